#include "kernels/host/pseudo_inverse.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/buffer.hpp"
#include "core/lapack.hpp"

namespace td::kernels::host {

namespace {

// Up to this size LAPACK's unblocked routines are used, which run on the calling thread: OpenBLAS starts threads of its
// own for 17 columns already, and these and our own then wait for each other's cores. On two cores an iteration at rank
// 32 took 28 ms of which 16 were MTTKRP.
constexpr int one_thread = 96;

// The upper triangle, column-major, is the lower one, row-major: the matrices are symmetric, so either reading is
// right.
void mirror(double *a, int n) {
  for (i64 i = 0; i < n; ++i)
    for (i64 j = i + 1; j < n; ++j)
      a[i * n + j] = a[j * n + i];
}

/// Inverts a in place; false if it is not positive definite or its reciprocal condition number is below cutoff.
bool invert_by_cholesky(double *a, int n, double cutoff) {
  Buffer<double> work(i64{3} * n, "the condition number of the normal equations");
  Buffer<int> whole_work(n, "the condition number of the normal equations");
  const double norm = dlansy_("1", "U", &n, a, &n, work.data(), 1, 1);
  int status = 0;
  const bool small = n <= one_thread;
  if (small)
    dpotf2_("U", &n, a, &n, &status, 1);
  else
    dpotrf_("U", &n, a, &n, &status, 1);
  if (status != 0)
    return false;
  double reciprocal_condition = 0;
  dpocon_("U", &n, a, &n, &norm, &reciprocal_condition, work.data(), whole_work.data(), &status, 1);
  if (status != 0 || !(reciprocal_condition >= cutoff))
    return false;
  if (small) { // the inverse of U, then its product with its transpose: what dpotri does
    dtrti2_("U", "N", &n, a, &n, &status, 1, 1);
    if (status == 0)
      dlauu2_("U", &n, a, &n, &status, 1);
  } else {
    dpotri_("U", &n, a, &n, &status, 1);
  }
  if (status != 0)
    return false;
  mirror(a, n);
  return true;
}

/// p := pseudo-inverse of a, which is destroyed; gives the number of eigenvalues kept, -1 if they were not found.
i64 invert_by_eigen(double *a, int n, double cutoff, double *p) {
  Buffer<double> eigenvalues(n, "eigenvalues of the normal equations");
  double wanted = 0;
  int status = 0;
  const int query = -1;
  dsyev_("V", "U", &n, a, &n, eigenvalues.data(), &wanted, &query, &status, 1, 1);
  const int work_size = std::max(static_cast<int>(wanted), 3 * n);
  Buffer<double> work(work_size, "the eigen-decomposition of the normal equations");
  dsyev_("V", "U", &n, a, &n, eigenvalues.data(), work.data(), &work_size, &status, 1, 1);
  if (status != 0)
    return -1;

  const double largest = eigenvalues[n - 1]; // ascending
  std::fill_n(p, i64{n} * n, 0.0);
  i64 kept = 0;
  for (i64 k = 0; k < n; ++k) {
    if (!(eigenvalues[k] > cutoff * largest) || !(eigenvalues[k] > 0))
      continue;
    ++kept;
    const double *q = a + k * n;
    for (i64 i = 0; i < n; ++i) {
      const double scaled = q[i] / eigenvalues[k];
      for (i64 j = 0; j <= i; ++j)
        p[i * n + j] += scaled * q[j];
    }
  }
  mirror(p, n);
  return kept;
}

} // namespace

SolveRecord pseudo_inverse(const double *v, i64 rank, double cutoff, double *p) {
  if (rank > std::numeric_limits<int>::max() / 64)
    throw_error(Status::unsupported, "rank {} is more than LAPACK's 32-bit sizes can take", rank);
  const int n = static_cast<int>(rank);
  const i64 size = rank * rank;
  const auto failed = [&](const SolveRecord &how) {
    std::fill_n(p, size, std::numeric_limits<double>::quiet_NaN());
    return how;
  };
  double largest = 0;
  for (i64 k = 0; k < size; ++k) {
    if (!std::isfinite(v[k]))
      return failed({0, 0, SolveFailure::not_finite, k, v[k]});
    largest = std::max(largest, std::abs(v[k]));
  }
  if (largest == 0) {
    std::fill_n(p, size, 0.0);
    return {0, 1};
  }
  // Scaled by a power of two (exact) so that squares inside LAPACK neither overflow nor vanish.
  const int exponent = -std::ilogb(largest);
  const auto scaled = [&](double *to) {
    std::transform(v, v + size, to, [&](double x) { return std::ldexp(x, exponent); });
  };
  SolveRecord record{static_cast<double>(rank), 0};
  scaled(p);
  if (!invert_by_cholesky(p, n, cutoff)) {
    Buffer<double> a(size, "the eigen-decomposition of the normal equations");
    scaled(a.data());
    const i64 kept = invert_by_eigen(a.data(), n, cutoff, p);
    if (kept < 0)
      return failed({0, 1, SolveFailure::no_convergence, 0, 0});
    record = {static_cast<double>(kept), 1};
  }
  for (i64 k = 0; k < size; ++k) {
    p[k] = std::ldexp(p[k], exponent);
    if (!std::isfinite(p[k]))
      return failed({0, record.used_eigen, SolveFailure::overflow, 0, largest});
  }
  return record;
}

} // namespace td::kernels::host
