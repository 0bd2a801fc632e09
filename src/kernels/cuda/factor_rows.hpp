// What the kernels over stored keys know of the factors.
#pragma once

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/sizes.hpp"

namespace td::kernels::cuda {

/// Fields and rows of all modes but `mode`.
struct OtherFactors {
  int count = 0;
  FactorRows factor[most_factors];
  bool aligned = true;
  bool narrow = true; // no index needs more than 32 bits

  static OtherFactors of(const KeyLayout &layout, std::span<const i64> dims, const MttkrpArgs &args) {
    OtherFactors others;
    for (int m = 0; m < layout.order; ++m) {
      if (m == args.mode)
        continue;
      const auto at = static_cast<std::size_t>(m);
      const ConstMatrix &a = args.factors[at];
      FactorRows &f = others.factor[others.count++];
      f = field(layout, dims, m);
      f.rows = static_cast<const unsigned char *>(a.data);
      f.stride = static_cast<u32>(a.ld * size_of(a.type));
      others.aligned = others.aligned && is_aligned(a);
      others.narrow = others.narrow && f.mask <= 0xffffffffu;
    }
    return others;
  }

  static FactorRows field(const KeyLayout &layout, std::span<const i64> dims, int mode) {
    const auto at = static_cast<std::size_t>(mode);
    const int bits = layout.bits[at];
    return {nullptr, 0, layout.shift[at], bits == 0 ? 0 : ~u64{0} >> (64 - bits), mode, dims[at], 0, 0};
  }
};

} // namespace td::kernels::cuda
