// Factorizations of small matrices in host memory, all on the calling thread. Throws std::bad_alloc where there is no
// memory for the workspace.
#pragma once

#include <optional>
#include <vector>

#include "core/types.hpp"

namespace td {

/// The lower triangle of a, a symmetric n x n matrix by rows, becomes L with a = L L^T. False if a is not positive
/// definite to rounding. What is above the diagonal is neither read nor written.
bool cholesky(double *a, i64 n);

/// The lower triangle of a, by rows, becomes its inverse. False if a diagonal element is zero. The rest of a becomes
/// zero.
bool invert_lower_triangle(double *a, i64 n);

struct SymmetricEigen {
  i64 size = 0;
  std::vector<double> values;  // descending
  std::vector<double> vectors; // vector k is at [k * size, (k + 1) * size), of length 1

  const double *vector(i64 k) const noexcept { return vectors.data() + k * size; }
};

/// The eigen-decomposition of a symmetric, finite matrix without gaps; nothing if it does not converge.
std::optional<SymmetricEigen> symmetric_eigen(const double *matrix, i64 size);

/// A matrix by columns, without gaps.
struct Columns {
  i64 rows = 0;
  i64 columns = 0;
  std::vector<double> numbers;

  static Columns zeros(i64 rows, i64 columns);
  double *column(i64 c) { return numbers.data() + c * rows; }
  const double *column(i64 c) const { return numbers.data() + c * rows; }
};

/// The QR decomposition a = q r by Householder's reflections: a becomes q with min(rows, columns) orthonormal columns;
/// gives r.
Columns decompose_qr(Columns &a);

/// a = u diag(s) w^T with n = min(rows, columns) singular values, descending.
struct SingularValues {
  Columns u; // rows x n
  Columns w; // columns x n
  std::vector<double> s;
};

/// The singular value decomposition of a finite matrix by one-sided Jacobi rotations, accurate for small singular
/// values too.
SingularValues singular_values(const Columns &a);

} // namespace td
