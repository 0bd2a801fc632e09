#include "kernels/cuda/mttkrp_fused.cuh"

namespace td::kernels::cuda::fused {

template void start<double>(Gpu &, const Job<double> &, const DenseLayout &);

} // namespace td::kernels::cuda::fused
