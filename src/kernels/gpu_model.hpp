// The cost model of a GPU, as far as decisions go by it: tiles of sorted copies, and copies of factors in f32. They are
// made where no GPU need be, so the model stands here; what the backend predicts (cuda/prediction.cpp) and how it
// launches (cuda/sorted_layout.cpp) has its constants from here.
//
// Decisions go by the sizes of a chip and by rates of an H200, and never by rates that were measured on the machine:
// how a tensor is stored must not depend on how a measurement came out. bench/gpu_mttkrp measures what comes of them.
#pragma once

#include <cmath>

#include "kernels/tuning.hpp"

namespace td::kernels::gpu {

inline constexpr double near_bytes = 128;         // a cycle of a multiprocessor, from shared memory
inline constexpr double tile_start_cycles = 8000; // to find where a tile begins and to meet at its end
inline constexpr double segment_cycles = 80;      // to end a segment of a row and add it to the row

/// Bytes that staged rows leave to the first-level cache where rows of other factors come from memory: these have to
/// arrive somewhere. With 180 KB of an H200's 228 staged, walks took up to 1.3 times as long as with none.
inline constexpr i64 room_for_far_rows = i64{64} << 10;

/// Bytes of rows in no order that the second-level cache holds: 51.2 MB of an H200's 62.9.
constexpr double cached_bytes(const Chip &chip) noexcept { return static_cast<double>(chip.cache_bytes) * 625 / 768; }

/// How many of some rows entries refer to, if all rows are equally likely.
inline double expected_rows(double rows, double entries) { return rows * -std::expm1(-entries / rows); }

/// Whether it pays to read rows from copies in f32: a column of a factor takes 20 bytes a row to copy (two passes read
/// 8, one writes 4), and what an entry fetches of it is 4 bytes less.
constexpr bool pays_to_gather(std::span<const i64> dims, i64 nnz) noexcept {
  double rows = 0;
  for (const i64 dim : dims)
    rows += static_cast<double>(dim);
  return 4 * static_cast<double>(nnz) * static_cast<double>(dims.size() - 1) > 20 * rows;
}

/// What MTTKRP in a mode of a sorted copy costs, in cycles of one multiprocessor, at rows of 32 numbers of `row_type`
/// from which terms of `term_type` are made.
class SortedCost {
public:
  SortedCost(const Chip &chip, std::span<const i64> dims, int mode, i64 nnz, ValueType row_type, ValueType term_type);

  /// The most bits of a mode whose rows can be staged.
  int most_bits() const;
  /// Cycles with tiles in which the index of each other mode has so many bits.
  double operator()(std::span<const int> bits) const;

private:
  double far_bytes(double together) const;

  Chip chip_;
  std::span<const i64> dims_;
  std::size_t mode_;
  double nnz_;
  double row_bytes_;
  double least_; // cycles of a row
  double staged_bytes_;
};

} // namespace td::kernels::gpu
