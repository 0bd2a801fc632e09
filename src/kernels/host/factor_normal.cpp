// A factor of the pseudo-inverse of a small symmetric positive semidefinite matrix.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "core/factorizations.hpp"
#include "kernels/host/host_backend.hpp"

namespace td::kernels::host {

namespace {

/// The largest sum of magnitudes in a column of a symmetric matrix that is given whole.
double largest_column_sum(const double *a, i64 n) {
  double largest = 0;
  for (i64 i = 0; i < n; ++i)
    largest = std::max(largest, std::transform_reduce(a + i * n, a + (i + 1) * n, 0.0, std::plus<>(),
                                                      [](double x) { return std::abs(x); }));
  return largest;
}

/// The same of V^-1 = T^T T, T the lower triangle in t with zeros above it.
double norm_of_inverse(const double *t, i64 n) {
  auto inverse = Buffer<double>::zeros(n * n, "the condition number of the normal equations");
  for (i64 k = 0; k < n; ++k)
    for (i64 i = 0; i <= k; ++i) {
      const double factor = t[k * n + i];
      double *row = inverse.data() + i * n;
      for (i64 j = 0; j <= i; ++j)
        row[j] += factor * t[k * n + j];
    }
  for (i64 i = 0; i < n; ++i)
    for (i64 j = 0; j < i; ++j)
      inverse[j * n + i] = inverse[i * n + j];
  return largest_column_sum(inverse.data(), n);
}

/// f := the inverse of v's lower triangle L, v = L L^T, if v is well enough conditioned; the condition number then.
std::optional<double> by_cholesky(double *f, i64 n, double cutoff) {
  const double norm = largest_column_sum(f, n);
  if (!cholesky(f, n) || !invert_lower_triangle(f, n))
    return std::nullopt;
  const double condition = norm * norm_of_inverse(f, n);
  if (!(condition * cutoff <= 1))
    return std::nullopt;
  return condition;
}

/// f := eigenvectors over the roots of their eigenvalues, a row each, by ascending eigenvalue; false if they were not
/// found.
bool by_eigen(double *f, i64 n, double cutoff, SolveRecord &record) {
  record.used_eigen = 1;
  const auto eigen = symmetric_eigen(f, n);
  if (!eigen)
    return false;
  const double largest = eigen->values.front(), smallest = eigen->values.back();
  record.condition = smallest > 0 && largest <= most_condition * smallest ? largest / smallest : most_condition;
  record.effective_rank = 0;
  for (i64 k = 0; k < n; ++k) {
    const double value = eigen->values[static_cast<std::size_t>(k)];
    const bool kept = value > cutoff * largest && value > 0;
    record.effective_rank += kept ? 1 : 0;
    const double root = kept ? std::sqrt(value) : 1;
    std::transform(eigen->vector(k), eigen->vector(k) + n, f + (n - 1 - k) * n,
                   [&](double q) { return kept ? q / root : 0.0; });
  }
  return true;
}

SolveRecord factor(const double *v, i64 rank, double cutoff, double *f) {
  const i64 n = rank;
  const i64 size = rank * rank;
  const auto failed = [&](const SolveRecord &how) {
    std::fill_n(f, size, std::numeric_limits<double>::quiet_NaN());
    return how;
  };
  const double *bad = std::find_if(v, v + size, [](double x) { return !std::isfinite(x); });
  if (bad != v + size)
    return failed({0, 0, 0, SolveFailure::not_finite, bad - v, *bad});

  // Powers of two round nothing, and a diagonal near 1 leaves the condition number to the columns' directions: a short
  // column is no reason to drop it. Squares neither overflow nor vanish.
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

} // namespace

void HostBackend::factor_normal(const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) {
  *record = factor(v, rank, cutoff, f);
}

} // namespace td::kernels::host
