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
/// False, and nothing is done, if its workspace is to be of memory that is free and there is too little of it.
bool mttkrp_gemm(Gpu &device, const DenseView &x, const MttkrpArgs &args, bool in_free_memory);
/// This is Kernels::mttkrp_cells, and adds where args say so. `parts`: where cells_layout has several, memory for them.
void mttkrp_cells(Gpu &device, const CellsView &x, const MttkrpArgs &args, double *parts);
void mttkrp_strided(Gpu &device, const DenseView &x, const MttkrpArgs &args);

} // namespace td::kernels::cuda
