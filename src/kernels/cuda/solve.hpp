// The pseudo-inverse of R x R matrices that one block can hold.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/sizes.hpp"

namespace td::kernels::cuda {

/// As pseudo_inverse, for rank <= small_rank.
void invert_small(Device &device, const double *v, i64 rank, double cutoff, double *p, SolveRecord *record);

} // namespace td::kernels::cuda
