// Leading left singular vectors of a tensor's unfoldings.
#pragma once

#include <vector>

#include "kernels/kernels.hpp"

namespace td::solvers {

struct Eigenvectors {
  i64 size = 0;
  i64 count = 0;               // may be less than asked for: the unfolding's rank, as far as it shows
  std::vector<double> vectors; // vector k is at [k * size, (k + 1) * size)
};

/// The `count` <= dims[mode] leading eigenvectors of X_(n) X_(n)^T. x is as Backend::unfolding_normal wants it.
Eigenvectors leading_eigenvectors(kernels::Backend &backend, const kernels::TensorView &x, int mode, i64 count,
                                  u64 seed);

/// Modes up to this length get their matrix computed whole, O(dims[mode]) times the entries; longer ones a randomized
/// subspace iteration.
inline constexpr i64 longest_whole_mode = 512;

} // namespace td::solvers
