#include "kernels/cuda/sorted_walk.cuh"

namespace td::kernels::cuda {

template void start_walk<float, float>(Gpu &, const SortedJob &, const Walk &, int);

} // namespace td::kernels::cuda
