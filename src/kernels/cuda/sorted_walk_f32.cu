#include "kernels/cuda/sorted_walk.cuh"

namespace td::kernels::cuda {

template void start_walk<float, float>(Gpu &, const SortedJob &, const SortedLayout &, i64);

} // namespace td::kernels::cuda
