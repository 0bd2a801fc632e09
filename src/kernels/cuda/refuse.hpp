// Refusals, in the words of the host's kernels.
#pragma once

#include <cstddef>

#include "core/types.hpp"

namespace td::kernels::cuda {

/// `at` < 0: nothing to refuse.
void refuse_not_finite(i64 at, i64 rank, double value);
void refuse_no_convergence(int info, i64 rank);
/// Of an inverse whose largest magnitude is `scale` 2^exponent.
void refuse_overflow(double scale, int exponent, double largest);
void refuse_rank(i64 rank);

/// The unfolding of a format that has no fibers.
[[noreturn]] void refuse_unfolding(std::size_t format);

} // namespace td::kernels::cuda
