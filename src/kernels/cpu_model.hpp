// What the CPU's kernels cost, as far as decisions go by it: tiles of sorted copies, and modes that share partial
// products. Predictions (cpu/prediction.cpp) take the caches from here and all rates from measurements. Decisions take
// no measured rate: how a tensor is stored must not depend on how a measurement came out.
#pragma once

#include "core/types.hpp"

namespace td::kernels::cpu {

// Bytes of rows that are fetched at the rate of a first-level cache, of a second-level cache, and of memory.
inline constexpr i64 near_bytes = i64{32} << 10;
inline constexpr i64 middle_bytes = i64{1} << 20;
inline constexpr i64 far_bytes = i64{64} << 20;

// Rows of the other factors that a tile needs, to begin with: 40 KiB at rank 32 in f64, a first-level cache. Twice as
// many are tried until rows are cut into segments of enough entries; by then a tile may fit the second-level cache
// only.
inline constexpr i64 first_tile_rows = 160;
// Entries that a tile's segment of a row should have on average: shorter ones cost more in row ends than tiles save.
inline constexpr i64 segment_size = 16;
// Entries for each row of the other factors that a tile fetches: with fewer, fetching them is the work.
inline constexpr i64 tile_reuse = 8;

// Nanoseconds an entry or cell on one core of an AMD Zen 5 at rank 16 in f64. Only their proportions matter: a pass
// over the entries with so many factors to multiply; a cell's row of the partial product, written once and read with
// the factors' rows for each mode.
constexpr double pass_cost(int factors) { return 0.6 + 0.5 * factors; }
constexpr double cell_cost(int modes) { return 4 + 8 * modes; }

} // namespace td::kernels::cpu
