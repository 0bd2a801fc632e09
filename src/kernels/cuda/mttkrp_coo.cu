#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/refuse.hpp"
#include "kernels/cuda/scatter.cuh"

namespace td::kernels::cuda {

void mttkrp_coo(Device &device, const CooView &x, const MttkrpArgs &args) {
  if (args.conflicts == Conflicts::privatize)
    refuse_private_rows();
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    scatter<T>(device, CooEntries<T>(x), args);
  });
}

} // namespace td::kernels::cuda
