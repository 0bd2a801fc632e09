// How MTTKRP on a partial product cuts its work: by its shape and the rank; only rows also by the threads.
#pragma once

#include "kernels/cpu/dense_cuts.hpp"

namespace td::kernels::cpu {

inline constexpr i64 cells_product_bytes = i64{256} << 10; // of Khatri-Rao rows: half of what a dense tensor's have,
                                                           // since as much of the cells' rows passes beside them

/// A dense tensor's slabs, each a matrix of the first mode by the modes in between.
struct SlabCuts {
  i64 depth = 1; // of the modes in between
  i64 chunks;    // of it
  i64 chunk;     // Khatri-Rao rows that a thread has at a time
  i64 groups;    // of a slab's rows
  i64 rows;      // of such a group at most

  SlabCuts(std::span<const i64> dims, i64 padded, i64 size) {
    for (const i64 d : dims.subspan(1, dims.size() - 2))
      depth *= d;
    chunks = ceil_of(depth, std::max(product_bytes / row_bytes(padded, size), long_depth));
    chunk = ceil_of(depth, chunks);
    groups = ceil_of(dims.front(), std::max(sums_bytes / row_bytes(padded, 8) / 2, least_rows));
    rows = ceil_of(dims.front(), groups);
  }
};

struct CellsCuts {
  i64 ranges; // of left
  i64 tiles;
  i64 parts; // of the tiles

  CellsCuts(const Unfolding &shape, i64 rank)
      : ranges(ceil_of(shape.left, std::max<i64>(cells_product_bytes / row_bytes(rank, 8), 16))),
        tiles(ranges * shape.right), parts(std::min(tiles, std::clamp<i64>(part_rows / shape.n, 1, most_parts))) {}

  /// Groups of rows: several where their sums are too many for the cache, and where parts are too few for the threads.
  i64 groups(i64 rows, i64 rank, int threads) const {
    const i64 most_rows = std::max<i64>(sums_bytes / row_bytes(rank, 8), 8);
    const i64 wanted = ceil_of(items_per_thread * threads, parts);
    return std::max(ceil_of(rows, most_rows), std::clamp<i64>(wanted, 1, std::max<i64>(rows / 8, 1)));
  }

  /// Khatri-Rao rows that a thread has at a time.
  i64 depth(const Unfolding &shape) const { return ceil_of(shape.left, ranges); }
};

} // namespace td::kernels::cpu
