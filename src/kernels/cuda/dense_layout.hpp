// How the fused MTTKRP of a dense tensor is cut: read by the launch and by the prediction, so plain C++.
//
// The tensor is a matrix: the indices of its leading modes, those below a cut, by those of its trailing modes. One side
// holds the mode, alone or beside others, and its indices are the rows of a product; over the other side, the depth, is
// summed. So neither a short mode nor one in the middle makes a narrow product, and nothing is unfolded. Sums over the
// other modes of the rows' side follow, on results in registers.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

inline constexpr int dense_rows = 128; // of a tile
inline constexpr i64 dense_most_blocks = 1024;

/// Warps beside each other, each with 32 columns, and how many blocks a multiprocessor then has registers for.
constexpr int dense_across(i64 columns) { return columns <= 32 ? 1 : columns <= 64 ? 2 : 3; }
constexpr int dense_together(int across) { return across == 1 ? 2 : 1; }
/// The depth of a chunk.
constexpr int dense_depth(int across) { return across == 3 ? 32 : 16; }
/// Chunks that are on their way at a time; the least where a block can have less than 112 KB of shared memory.
constexpr int dense_stages(int across) { return across == 3 ? 3 : 4; }
inline constexpr int dense_least_stages = 3;
/// Bytes of shared memory that a block takes with so many of these, of elements of so many bytes.
constexpr i64 dense_shared_bytes(bool leading, i64 element, int across, int stages) {
  const i64 depth = dense_depth(across);
  const i64 chunk = leading ? depth * (dense_rows + 32 / element) : dense_rows * (depth + 4);
  const i64 columns = i64{32} * across;
  const i64 stage = chunk * element + depth * (columns + 4) * 8 + 2 * 8;
  return (stages * stage + 32 * (columns + 4) * 8 + 2 * dense_rows * 8 + 15) / 16 * 16;
}

/// The leading dimension of a Khatri-Rao product: rows of 16 bytes.
constexpr i64 dense_product_ld(i64 rank) { return (rank + 1) / 2 * 2; }

struct DenseLayout {
  int cut = 0;
  bool leading = true;  // the rows are of the modes below the cut
  i64 inner = 1;        // combinations of the row side's modes below the mode
  i64 count = 0;        // rows of the result
  i64 outer = 1;        // combinations of the row side's modes above it
  i64 depth = 0;        // combinations of the other side's modes
  i64 leading_size = 0; // combinations of the modes below the cut
  i64 columns = 0;      // of a tile, a multiple of 8
  i64 column_tiles = 0;
  int stages = 0;
  i64 blocks = 0; // of each column tile: they share its pairs of a row tile and a chunk equally
  i64 slots = 0;  // rows of the result that a block adds up, at most
  bool makes_products =
      false;          // of rows of several factors, or f32 ones; else a factor serves as the Khatri-Rao product
  i64 depth_part = 0; // how much of the depth has products at a time

  i64 rows() const { return inner * count * outer; }
  i64 row_tiles() const { return (rows() + dense_rows - 1) / dense_rows; }
  int across() const { return dense_across(columns); }
  i64 chunk() const { return dense_depth(across()); }
  i64 chunks() const { return (depth + chunk() - 1) / chunk(); }
  // Numbers in f64, told as double: sizes that nothing has are predicted too.
  /// The sums of all blocks until they are added up.
  double partials() const {
    return static_cast<double>(blocks) * static_cast<double>(slots) * static_cast<double>(column_tiles * columns);
  }
  double products(i64 rank) const {
    return makes_products
               ? static_cast<double>(std::min(depth, depth_part)) * static_cast<double>(dense_product_ld(rank))
               : 0;
  }
};

inline i64 dense_shared_bytes(const DenseLayout &l, ValueType type) {
  return dense_shared_bytes(l.leading, size_of(type), l.across(), l.stages);
}

/// Cycles of all multiprocessors together, where each gets so many bytes a cycle from memory.
double dense_cycles(const DenseLayout &layout, ValueType type, const Chip &chip, double memory_bytes);

/// The cut that takes the fewest cycles, by what is known of the chip alone: the same in each run. `rows`: how many of
/// the mode's are asked for.
DenseLayout dense_layout(std::span<const i64> dims, int mode, i64 rows, i64 rank, ValueType type, const Chip &chip);

} // namespace td::kernels::cuda
