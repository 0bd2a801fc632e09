#include "kernels/cuda/mttkrp_fused.cuh"

namespace td::kernels::cuda::fused {

template void start<float>(Gpu &, const Job<float> &, const DenseLayout &);

} // namespace td::kernels::cuda::fused
