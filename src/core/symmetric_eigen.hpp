// Eigenvalues and eigenvectors of symmetric matrices in host memory.
#pragma once

#include <vector>

#include "core/types.hpp"

namespace td {

struct SymmetricEigen {
  i64 size = 0;
  std::vector<double> values;  // descending
  std::vector<double> vectors; // vector k is at [k * size, (k + 1) * size), of length 1

  const double *vector(i64 k) const noexcept { return vectors.data() + k * size; }
};

/// Of a symmetric, finite matrix without gaps. Throws Status::numerical if LAPACK does not converge.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, i64 size);

} // namespace td
