#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/scatter.cuh"

namespace td::kernels::cuda {

void mttkrp_blco(Device &device, const BlcoView &x, const MttkrpArgs &args) {
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    scatter<T>(device, BlcoEntries<T>(x), args);
  });
}

} // namespace td::kernels::cuda
