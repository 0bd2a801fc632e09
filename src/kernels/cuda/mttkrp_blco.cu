#include "kernels/cuda/blco_segments.cuh"
#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/scatter.cuh"

namespace td::kernels::cuda {

extern template void add_segments<float, double>(Gpu &, const BlcoView &, const MttkrpArgs &);

void mttkrp_blco(Gpu &device, const BlcoView &x, const MttkrpArgs &args) {
  dispatch_mixed(x.type, args.out.type, [&](auto zero, auto term) {
    using T = decltype(zero);
    using Term = decltype(term);
    // Tiles add to rows as they come, so what is to be summed in stored order is sorted first.
    if (args.conflicts == Conflicts::owner)
      scatter<T, Term>(device, BlcoEntries<T>(x), args);
    else
      add_segments<T, Term>(device, x, args);
  });
}

} // namespace td::kernels::cuda
