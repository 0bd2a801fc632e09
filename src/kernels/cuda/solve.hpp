// The pseudo-inverse of R x R matrices that one block can hold.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/kernels.hpp"

namespace td::kernels::cuda {

/// Up to this rank the whole solve is one block's: beyond it the host asks cuSOLVER, and how that went.
inline constexpr i64 small_rank = 64;

/// As pseudo_inverse, for rank <= small_rank.
void invert_small(Device &device, const double *v, i64 rank, double cutoff, double *p, SolveRecord *record);

} // namespace td::kernels::cuda
