// MTTKRP on each stored form; args as in kernels.hpp, all arrays in the GPU's memory.
#pragma once

#include "kernels/cuda/gpu.hpp"
#include "kernels/kernels.hpp"

namespace td::kernels::cuda {

void mttkrp_coo(Gpu &device, const CooView &x, const MttkrpArgs &args);
void mttkrp_blco(Gpu &device, const BlcoView &x, const MttkrpArgs &args);
void mttkrp_sorted(Gpu &device, const SortedView &x, const MttkrpArgs &args);
/// Takes views without strides.
void mttkrp_dense(Gpu &device, const DenseView &x, const MttkrpArgs &args);
/// The partial product of a view without strides that keeps the first and the last mode, as Kernels::mttkrp_slabs.
void mttkrp_slabs(Gpu &device, const DenseView &x, std::span<const ConstMatrix> factors, Matrix out);
void mttkrp_tile(Gpu &device, const DenseView &x, const MttkrpArgs &args); // by dense_kernel = elem, slice or tile
void mttkrp_gemm(Gpu &device, const DenseView &x, const MttkrpArgs &args);
void mttkrp_strided(Gpu &device, const DenseView &x, const MttkrpArgs &args);

} // namespace td::kernels::cuda
