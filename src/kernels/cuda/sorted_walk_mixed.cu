#include "kernels/cuda/sorted_walk.cuh"

namespace td::kernels::cuda {

template void start_walk<float, double>(Gpu &, const SortedJob &, const Walk &, int);

} // namespace td::kernels::cuda
