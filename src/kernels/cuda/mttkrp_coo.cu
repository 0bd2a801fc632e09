#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/scatter.cuh"

namespace td::kernels::cuda {

void mttkrp_coo(Device &device, const CooView &x, const MttkrpArgs &args) {
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    scatter<T>(device, CooEntries<T>(x), args);
  });
}

} // namespace td::kernels::cuda
