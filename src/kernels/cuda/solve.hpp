// This solves normal equations that one block can hold.
#pragma once

#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/sizes.hpp"

namespace td::kernels::cuda {

/// Does what factor_normal does, for rank <= small_rank.
void factor_small(Gpu &device, const double *v, i64 rank, double cutoff, double *f, SolveRecord *record);

} // namespace td::kernels::cuda
