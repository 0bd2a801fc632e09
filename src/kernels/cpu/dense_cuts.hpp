// How MTTKRP of a dense tensor cuts its work: by the tensor's shape and the rank; only rows also by the threads.
#pragma once

#include <algorithm>

#include "kernels/cpu/dense.hpp"

namespace td::kernels::cpu {

inline constexpr i64 long_depth = 256; // columns of a block at most: a panel of so many fits the first-level cache
inline constexpr i64 short_depth = 64; // where tiles are short and a block's rows lie far apart, so do these
inline constexpr i64 short_left = 64;  // below this, tiles span several q
inline constexpr i64 product_bytes = i64{512} << 10;     // of rows of a Khatri-Rao product, in the second-level cache
inline constexpr i64 sums_bytes = i64{1} << 20;          // of the rows that one thread works on, in that cache too
inline constexpr i64 short_rows = 10 * simd::block_rows; // of them, where tiles are short
inline constexpr i64 most_parts = 64;
inline constexpr i64 part_rows = 4096;     // rows of all parts' sums together, unless one part has more
inline constexpr i64 items_per_thread = 4; // of the work, so that a slow thread does not keep the others waiting
inline constexpr double most_fibers = 1.1; // times as many registers if they hold rows of the tensor
inline constexpr i64 least_rows = 2 * simd::block_rows; // that make good use of a tile's Khatri-Rao rows
inline constexpr i64 few_uses = simd::block_rows;       // of a Khatri-Rao row, which then takes longer than they do
inline constexpr i64 least_inner = 64;                  // columns that share a row of the outer modes
inline constexpr i64 whole_rows = 4096;                 // that a thread takes, where a block has all columns

constexpr i64 ceil_of(i64 a, i64 b) { return a / b + (a % b > 0 ? 1 : 0); }

/// Bytes of a row, for dividing a cache's bytes by: beyond a cache's size it does not matter how many more they are.
constexpr i64 row_bytes(i64 columns, i64 size) { return std::min(columns, i64{1} << 40) * size; }

/// The columns of the unfolding are those of the inner modes, which come first in memory, for each of the outer ones.
/// Khatri-Rao rows of the inner modes are made once for all outer indices; the outer modes' one row scales a product.
struct DenseCuts {
  bool long_left;
  bool fibers;    // columns of the unfolding are contiguous
  int inner_end;  // modes before this one are inner
  i64 inner_left; // columns of the inner modes before the mode
  i64 inner_q;    // of those after it
  i64 outer;
  i64 ranges;     // of inner_left where left is long, else of inner_q
  i64 q_per_tile; // where left is not long
  i64 tiles;      // a range for one index of the outer modes
  i64 parts;      // of the tiles
  bool whole;     // a block has all columns, and a row is written as soon as it is summed

  /// Modes in the order of memory; `padded` columns of tiles and sums; elements of `size` bytes.
  DenseCuts(std::span<const i64> dims, int mode, i64 padded, i64 size) {
    const Unfolding shape(dims, mode);
    long_left = shape.left >= short_left;
    fibers = shape.left == 1;
    const int order = static_cast<int>(dims.size());
    inner_end = long_left ? mode : order;
    const i64 uses = shape.n * (long_left ? shape.right : 1); // of a Khatri-Rao row, were all modes inner
    i64 columns = long_left ? shape.left : shape.columns();
    if (uses < few_uses) {
      columns = long_left ? 1 : shape.left;
      for (int m = long_left ? 0 : mode + 1; m < inner_end; ++m) {
        columns *= dims[static_cast<std::size_t>(m)];
        if (columns >= least_inner)
          inner_end = m + 1;
      }
    }
    inner_left = long_left ? columns : shape.left;
    inner_q = long_left ? 1 : columns / shape.left;
    outer = shape.columns() / columns;
    parts = std::clamp<i64>(part_rows / shape.n, 1, most_parts);
    whole = !long_left && outer == 1 && parts == 1 && columns <= long_depth;
    const i64 depth = std::max(product_bytes / row_bytes(padded, size), long_depth);
    ranges = ceil_of(inner_left, depth);
    q_per_tile = 1;
    if (!long_left) {
      ranges = ceil_of(inner_q, std::max<i64>(1, (outer > 1 || whole ? long_depth : short_depth) / shape.left));
      q_per_tile = ceil_of(inner_q, ranges);
    }
    tiles = ranges * outer;
    parts = std::min(parts, tiles);
  }

  /// Whether registers hold rows of the tensor instead of columns of the Khatri-Rao product, whose last register is
  /// padded: the bits of the result are the same. Not where the tensor's rows fill so many more registers.
  bool by_fibers(i64 rows, i64 rank, i64 padded, i64 lanes) const {
    const auto columns = static_cast<double>(rank) * static_cast<double>(ceil_of(rows, lanes) * lanes);
    return fibers && rows >= lanes && columns <= most_fibers * static_cast<double>(rows) * static_cast<double>(padded);
  }

  /// Groups of rows, each making the Khatri-Rao rows of its tiles again: several where the rows are too many for
  /// the cache, and where parts are too few for the threads.
  i64 groups(i64 rows, i64 padded, int threads) const {
    i64 most_rows = whole ? whole_rows : std::max(sums_bytes / row_bytes(padded, 8), least_rows);
    if (!long_left && !whole)
      most_rows = std::min(most_rows, short_rows);
    const i64 wanted = ceil_of(items_per_thread * threads, parts);
    return std::max(ceil_of(rows, most_rows), std::clamp<i64>(wanted, 1, std::max<i64>(rows / least_rows, 1)));
  }

  /// Rows whose sums a thread has at a time, of a group of so many units of `unit` rows.
  i64 summed(i64 units, i64 unit) const {
    return unit * (whole ? std::min(units, unit > 1 ? simd::fiber_registers : simd::block_rows) : units);
  }

  /// Rows of a Khatri-Rao product that a thread has at a time.
  i64 product_rows() const { return long_left ? ceil_of(inner_left, ranges) : q_per_tile * inner_left; }

  /// Rows of Khatri-Rao products that all threads make together for a group of rows: each part makes its ranges'.
  double made() const {
    const double once = static_cast<double>(long_left ? inner_left : inner_left * inner_q);
    return once * std::max(1.0, static_cast<double>(parts) / static_cast<double>(ranges));
  }

  /// Elements of the blocks that a thread gathers, of at most so many rows.
  i64 gathered(i64 rows) const {
    return long_left ? simd::block_rows * long_depth : std::min(simd::block_rows, rows) * q_per_tile * inner_left;
  }
};

/// Whether rows of the first mode are neighbours, and columns lie evenly.
inline bool has_even_fibers(const UnfoldingPlaces &places, const DenseCuts &cuts) {
  return cuts.fibers && places.row == 1 && places.right.even();
}

/// Whether blocks do not lie evenly, and are gathered first.
inline bool gathers_blocks(const UnfoldingPlaces &places, const DenseCuts &cuts) {
  return !places.left_is_one() || (!cuts.long_left && !places.right.even());
}

} // namespace td::kernels::cpu
