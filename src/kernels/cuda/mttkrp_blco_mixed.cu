#include "kernels/cuda/blco_segments.cuh"

namespace td::kernels::cuda {

template void add_segments<float, double>(Gpu &, const BlcoView &, const MttkrpArgs &);

} // namespace td::kernels::cuda
