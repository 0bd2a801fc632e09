#include "kernels/host/factor_normal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/blas_room.hpp"
#include "core/buffer.hpp"
#include "core/lapack.hpp"

namespace td::kernels::host {

namespace {

// Up to this size LAPACK's unblocked routines are used, which run on the calling thread: OpenBLAS starts threads of its
// own for 17 columns already, and these and our own then wait for each other's cores. On two cores an iteration at rank
// 32 took 28 ms of which 16 were MTTKRP.
constexpr int one_thread = 96;

// LAPACK reads matrices by columns: its upper triangle is the lower one of rows.

/// a := its Cholesky factor; false if it is not positive definite.
bool factor(double *a, int n) {
  int status = 0;
  if (n <= one_thread)
    dpotf2_("U", &n, a, &n, &status, 1);
  else
    dpotrf_("U", &n, a, &n, &status, 1);
  return status == 0;
}

/// a := the inverse of the triangle in it; false if that is singular.
bool invert_triangle(double *a, int n) {
  int status = 0;
  if (n <= one_thread)
    dtrti2_("U", "N", &n, a, &n, &status, 1, 1);
  else
    dtrtri_("U", "N", &n, a, &n, &status, 1, 1);
  return status == 0;
}

/// The largest sum of magnitudes in a column of V^-1 = T^T T, T the triangle in t.
double norm_of_inverse(const double *t, int n) {
  Buffer<double> inverse(i64{n} * n, "the condition number of the normal equations");
  Buffer<double> work(n, "the condition number of the normal equations");
  std::copy_n(t, i64{n} * n, inverse.data());
  int status = 0;
  if (n <= one_thread)
    dlauu2_("U", &n, inverse.data(), &n, &status, 1);
  else
    dlauum_("U", &n, inverse.data(), &n, &status, 1);
  return dlansy_("1", "U", &n, inverse.data(), &n, work.data(), 1, 1);
}

/// f := the inverse of v's lower triangle L, v = L L^T, if v is well enough conditioned; the condition number then.
std::optional<double> by_cholesky(double *f, int n, double cutoff) {
  Buffer<double> work(n, "the condition number of the normal equations");
  const double norm = dlansy_("1", "U", &n, f, &n, work.data(), 1, 1);
  if (!factor(f, n) || !invert_triangle(f, n))
    return std::nullopt;
  const double condition = norm * norm_of_inverse(f, n);
  if (!(condition * cutoff <= 1))
    return std::nullopt;
  for (i64 i = 0; i < n; ++i)
    std::fill(f + i * n + i + 1, f + (i + 1) * n, 0.0);
  return condition;
}

/// f := eigenvectors over the roots of their eigenvalues, a row each; false if they were not found.
bool by_eigen(double *f, int n, double cutoff, SolveRecord &record) {
  Buffer<double> eigenvalues(n, "eigenvalues of the normal equations");
  double wanted = 0;
  int status = 0;
  const int query = -1;
  const BlasRoom room(true); // of any size it multiplies on BLAS's threads
  dsyev_("V", "U", &n, f, &n, eigenvalues.data(), &wanted, &query, &status, 1, 1);
  const int work_size = std::max(static_cast<int>(wanted), 3 * n);
  Buffer<double> work(work_size, "the eigen-decomposition of the normal equations");
  dsyev_("V", "U", &n, f, &n, eigenvalues.data(), work.data(), &work_size, &status, 1, 1);
  record.used_eigen = 1;
  if (status != 0)
    return false;
  const double smallest = eigenvalues[0]; // they ascend
  const double largest = eigenvalues[n - 1];
  record.condition = smallest > 0 && largest <= most_condition * smallest ? largest / smallest : most_condition;
  record.effective_rank = 0;
  for (i64 k = 0; k < n; ++k) {
    const bool kept = eigenvalues[k] > cutoff * largest && eigenvalues[k] > 0;
    record.effective_rank += kept ? 1 : 0;
    const double root = kept ? std::sqrt(eigenvalues[k]) : 1;
    std::transform(f + k * n, f + (k + 1) * n, f + k * n, [&](double q) { return kept ? q / root : 0.0; });
  }
  return true;
}

} // namespace

SolveRecord factor_normal(const double *v, i64 rank, double cutoff, double *f) {
  if (rank > std::numeric_limits<int>::max() / 64)
    throw_error(Status::unsupported, "rank {} is more than LAPACK's 32-bit sizes can take", rank);
  const int n = static_cast<int>(rank);
  const BlasRoom room(n > one_thread);
  const i64 size = rank * rank;
  const auto failed = [&](const SolveRecord &how) {
    std::fill_n(f, size, std::numeric_limits<double>::quiet_NaN());
    return how;
  };
  const double *bad = std::find_if(v, v + size, [](double x) { return !std::isfinite(x); });
  if (bad != v + size)
    return failed({0, 0, 0, SolveFailure::not_finite, bad - v, *bad});

  // Powers of two round nothing, and a diagonal near 1 leaves the condition number to the columns' directions: a short
  // column is no reason to drop it. Squares inside LAPACK neither overflow nor vanish.
  std::vector<int> exponent(static_cast<std::size_t>(n));
  for (i64 k = 0; k < n; ++k)
    exponent[static_cast<std::size_t>(k)] = v[k * n + k] > 0 ? -(std::ilogb(v[k * n + k]) >> 1) : 0;
  const auto scale = [&] {
    for (i64 i = 0; i < n; ++i)
      for (i64 j = 0; j < n; ++j)
        f[i * n + j] =
            std::ldexp(v[i * n + j], exponent[static_cast<std::size_t>(i)] + exponent[static_cast<std::size_t>(j)]);
  };
  SolveRecord record{static_cast<double>(rank)};
  scale();
  if (const auto condition = by_cholesky(f, n, cutoff)) {
    record.condition = std::min(*condition, most_condition);
  } else {
    scale();
    if (!by_eigen(f, n, cutoff, record))
      return failed({0, 1, 0, SolveFailure::no_convergence, 0, 0});
  }
  for (i64 i = 0; i < n; ++i)
    for (i64 j = 0; j < n; ++j)
      f[i * n + j] = std::ldexp(f[i * n + j], exponent[static_cast<std::size_t>(j)]);
  return record;
}

} // namespace td::kernels::host
