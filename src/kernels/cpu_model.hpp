// What the CPU's kernels cost: one function of MTTKRP over entries, by which modes are put into groups, at the rates of
// one core, and by which cpu/prediction.cpp predicts seconds, at measured rates; and what tiles of sorted copies go by.
// Decisions take no measured rate: how a tensor is stored must not depend on how a measurement came out.
#pragma once

#include "kernels/tuning.hpp"

namespace td::kernels::cpu {

// Bytes of rows that are fetched at the rate of a first-level cache, of a second-level cache, and of memory.
inline constexpr i64 near_bytes = i64{32} << 10;
inline constexpr i64 middle_bytes = i64{1} << 20;
inline constexpr i64 far_bytes = i64{64} << 20;

/// What decisions go by: a core of an AMD Zen 5 with its neighbour at work.
inline constexpr Rates core_rates{13.5e9, 130e9, 90e9, 12e9, 57e9};

// Rows of the other factors that a tile needs, to begin with: 40 KiB at rank 32 in f64, a first-level cache. Twice as
// many are tried until rows are cut into segments of enough entries; by then a tile may fit the second-level cache
// only.
inline constexpr i64 first_tile_rows = 160;
// Entries that a tile's segment of a row should have on average: shorter ones cost more in row ends than tiles save.
inline constexpr i64 segment_size = 16;
// Entries for each row of the other factors that a tile fetches: with fewer, fetching them is the work.
inline constexpr i64 tile_reuse = 8;

/// MTTKRP in one mode, entry by entry.
struct Walk {
  std::span<const i64> dims; // rows of the factors
  int mode = 0;
  double entries = 0;
  double entry_bytes = 0;
  double tile_rows = 0; // of the other factors together, which are needed at a time; 0: all of each
  double sums = 0;      // rows of sums that are written
};

/// A walk over all entries for all rows; `type` is that of the numbers that are worked on.
Walk walk_over(const SortedView &x, ValueType type);
/// The same over entries that stand in no order of rows.
Walk walk_in_no_order(std::span<const i64> dims, int mode, i64 nnz, i64 entry_bytes);

/// Seconds of a walk, 0 where a rate is not known. Each entry is read once, from memory, and fetches a row of every
/// other factor, at the rate of the cache that holds these rows if all are equally likely; arithmetic is a
/// multiplication for each factor and an addition in each of `columns`, which are those of whole registers. Rows and
/// arithmetic go on one after the other, entries beside them; sums are read and written behind that.
double seconds_of(const Walk &walk, i64 rank, i64 columns, ValueType type, const Rates &rates);

} // namespace td::kernels::cpu
