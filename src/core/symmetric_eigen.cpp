#include "core/symmetric_eigen.hpp"

#include <algorithm>

#include "core/blas_room.hpp"
#include "core/error.hpp"
#include "core/lapack.hpp"

namespace td {

SymmetricEigen symmetric_eigen(std::vector<double> matrix, i64 size) {
  constexpr i64 largest_size = 16384; // its workspace of 2 n^2 numbers is counted in an int
  if (size > largest_size)
    throw_error(Status::unsupported, "eigenvectors of a {} x {} matrix: expected at most {}", size, size, largest_size);
  const BlasRoom room(true);
  const int n = static_cast<int>(size);
  std::vector<double> values(static_cast<std::size_t>(n));
  int status = 0;
  const int query = -1;
  double want = 0;
  int want_whole = 0;
  dsyevd_("V", "U", &n, matrix.data(), &n, values.data(), &want, &query, &want_whole, &query, &status, 1, 1);
  const int work_size = static_cast<int>(want);
  std::vector<double> work(static_cast<std::size_t>(work_size));
  std::vector<int> whole_work(static_cast<std::size_t>(want_whole));
  dsyevd_("V", "U", &n, matrix.data(), &n, values.data(), work.data(), &work_size, whole_work.data(), &want_whole,
          &status, 1, 1);
  if (status != 0)
    throw_error(Status::numerical, "the eigen-decomposition of a {} x {} matrix did not converge", n, n);
  std::reverse(values.begin(), values.end()); // LAPACK gives them ascending
  for (i64 k = 0; k < size / 2; ++k)
    std::swap_ranges(matrix.begin() + k * size, matrix.begin() + (k + 1) * size,
                     matrix.begin() + (size - 1 - k) * size);
  return {size, std::move(values), std::move(matrix)};
}

} // namespace td
