// Kernels over a tensor's entries other than MTTKRP, as kernels.hpp declares them.
#pragma once

#include "kernels/cuda/gpu.hpp"
#include "kernels/views.hpp"

namespace td::kernels::cuda {

void compare(Gpu &device, const TensorView &x, const double *weights, std::span<const ConstMatrix> factors,
             Range entries, double *out);
void unfolding_normal(Gpu &device, const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add);

} // namespace td::kernels::cuda
