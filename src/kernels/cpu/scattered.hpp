// How threads that share nonzeros in no order of rows keep their sums apart.
#pragma once

#include <algorithm>

#include "kernels/kernels.hpp"

namespace td::kernels::cpu {

inline constexpr i64 scattered_grain = 2048; // nonzeros that are worth a thread

/// Rows up to this many are privatized whole; for more, a pass over the keys finds which ones a thread needs.
inline constexpr i64 few_rows = 4096;

inline i64 loads_of(const MttkrpArgs &args, int threads) noexcept {
  return std::clamp<i64>(args.entries.size() / scattered_grain, 1, threads);
}

/// f64 rows of `rank` that threads may have for themselves: as much as the tensor itself takes (16 bytes a nonzero),
/// and always 64 MiB.
inline i64 most_private_rows(const MttkrpArgs &args) noexcept {
  constexpr i64 small = (i64{64} << 20) / 8;
  const i64 numbers = 2 * std::min(args.entries.size(), i64{1} << 60);
  return std::max(small, numbers) / std::max<i64>(args.out.cols, 1);
}

} // namespace td::kernels::cpu
