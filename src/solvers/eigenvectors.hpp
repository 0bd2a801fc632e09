// Leading left singular vectors of a tensor's unfoldings.
#pragma once

#include <functional>
#include <vector>

#include "kernels/backend.hpp"

namespace td::solvers {

struct Eigenvectors {
  i64 size = 0;
  i64 count = 0;               // may be less than asked for: the unfolding's rank, as far as it shows; 0 without time
  std::vector<double> vectors; // vector k is at [k * size, (k + 1) * size)
};

/// y := X_(n) X_(n)^T omega of a tensor's mode n; f64 matrices in a backend's memory.
using UnfoldingNormal = std::function<void(ConstMatrix omega, Matrix y)>;

/// The `count` <= n leading eigenvectors of X_(n) X_(n)^T, which is n x n. `mode` settles where an iteration starts.
/// Once time_is_up(), which is asked before each product with the matrix, they are those of the iterations so far, if
/// any.
Eigenvectors leading_eigenvectors(kernels::Backend &backend, const UnfoldingNormal &normal, int mode, i64 n, i64 count,
                                  u64 seed, const std::function<bool()> &time_is_up);

} // namespace td::solvers
