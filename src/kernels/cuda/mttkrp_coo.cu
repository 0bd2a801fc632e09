#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/refuse.hpp"
#include "kernels/cuda/scatter.cuh"

namespace td::kernels::cuda {

void mttkrp_coo(Gpu &device, const CooView &x, const MttkrpArgs &args) {
  if (args.conflicts == Conflicts::privatize)
    refuse_private_rows();
  dispatch_mixed(x.type, args.out.type, [&](auto zero, auto term) {
    using T = decltype(zero);
    scatter<T, decltype(term)>(device, CooEntries<T>(x), args);
  });
}

} // namespace td::kernels::cuda
