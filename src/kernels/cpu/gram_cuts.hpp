// How passes over the rows of a factor cut their work; rows in tiles that stay in cache. The kernels and what is
// predicted of them both read it.
#pragma once

#include <algorithm>

#include "kernels/cpu/parts.hpp"
#include "kernels/cpu/simd.hpp"

namespace td::kernels::cpu {

inline constexpr i64 tile_numbers = 16384; // 128 KiB: a tile stays in the second-level cache with room for its product
inline constexpr i64 gram_numbers = i64{1} << 22; // of all parts' Gram matrices together: 32 MiB

inline i64 tile_rows(i64 width) { return std::clamp<i64>(tile_numbers / width, 16, 512); }

struct GramCuts {
  i64 width; // columns in whole registers
  i64 step;  // rows of a tile
  i64 parts; // each with a Gram matrix of its own, whatever the number of threads

  GramCuts(i64 rows, i64 rank)
      : width(simd::padded(rank, ValueType::f64)), step(tile_rows(width)),
        parts(parts_of(rows, step, std::clamp<i64>(gram_numbers / width / std::max<i64>(rank, 1), 8, 64))) {}
};

} // namespace td::kernels::cpu
