// What the walks over sorted copies, whole and in tiles, share.
#pragma once

#include "kernels/kernels.hpp"

namespace td::kernels::cpu {

inline constexpr i64 chunk_size = 256; // nonzeros summed in the result's type: bounds the rounding of an f32 sum
inline constexpr i64 grain = 2048;     // nonzeros that are worth a thread

void mttkrp_tiled(const SortedView &x, const MttkrpArgs &args, int threads);

} // namespace td::kernels::cpu
