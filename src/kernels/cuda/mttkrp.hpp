// MTTKRP on each stored form; args as in kernels.hpp, all arrays in the GPU's memory.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/kernels.hpp"

namespace td::kernels::cuda {

void mttkrp_coo(Device &device, const CooView &x, const MttkrpArgs &args);
void mttkrp_blco(Device &device, const BlcoView &x, const MttkrpArgs &args);
void mttkrp_sorted(Device &device, const SortedView &x, const MttkrpArgs &args);
void mttkrp_dense(Device &device, const DenseView &x, const MttkrpArgs &args);

} // namespace td::kernels::cuda
