// How kernels divide their work, as far as it decides what they take: also for predictions, so plain C++.
#pragma once

#include <algorithm>

#include "kernels/kernels.hpp"

namespace td::kernels::cuda {

inline constexpr int block_threads = 256;
inline constexpr int warp = 32;

/// Lanes that take the columns of one row: a power of two, at most a warp.
inline int lanes_for(i64 columns) {
  int lanes = 1;
  while (lanes < warp && lanes < columns)
    lanes *= 2;
  return lanes;
}

/// Rows that loads of 16 bytes may take in.
inline bool is_aligned(const ConstMatrix &a) {
  return reinterpret_cast<std::uintptr_t>(a.data) % 16 == 0 && a.ld % 16 * size_of(a.type) % 16 == 0;
}

/// How the columns of a result are cut into passes of which each is one walk over the entries.
struct Passes {
  int lanes;   // of a group: 8, 16 or 32
  int columns; // of a pass, the last may have fewer

  /// `size` columns a lane, at most `most` columns a pass.
  Passes(i64 cols, int size, int most) {
    const int widest = std::min(most, warp * size);
    const i64 count = (cols + widest - 1) / widest;
    const auto even = static_cast<int>((cols + count - 1) / count);
    columns = (even + size - 1) / size * size;
    lanes = columns <= 8 * size ? 8 : columns <= 16 * size ? 16 : 32;
  }
};

// ---- BLCO ----

inline constexpr int blco_threads = 256;
inline constexpr int blco_each = 8; // entries a thread; 4096 a tile were up to a fifth slower (H200)
inline constexpr int blco_tile = blco_threads * blco_each;

/// Copies of the result that tiles add to, 1 for the result itself. Where the mode is shorter than the GPU has
/// multiprocessors, tiles would wait for each other (Nguyen et al., 5.3).
inline int blco_copies(const MttkrpArgs &args, int multiprocessors) {
  const bool privatize =
      args.conflicts == Conflicts::automatic ? args.out.rows < multiprocessors : args.conflicts == Conflicts::privatize;
  return privatize ? 32 : 1;
}
/// A copy has rows of a multiple of 16 bytes.
inline i64 blco_copy_ld(i64 columns) { return (columns + 3) / 4 * 4; }

// ---- factors ----

inline constexpr i64 most_blocks = 512; // that sum over rows: their sums are added up

inline constexpr int mma_tile = 32; // columns, or rows, that a warp holds at a time: 4 x 4 small matrices

/// Pairs of column tiles in the upper triangle of a Gram matrix.
inline i64 gram_pairs(i64 columns) {
  const i64 tiles = (columns + mma_tile - 1) / mma_tile;
  return tiles * (tiles + 1) / 2;
}
/// Blocks for each pair.
inline i64 gram_blocks(i64 rows, i64 columns) {
  constexpr i64 least_rows = 256; // of a block, so that adding up the blocks stays small beside the work
  return std::clamp<i64>(rows / least_rows, 1, std::max<i64>(most_blocks / gram_pairs(columns), 1));
}

/// Passing over rows of up to mma_tile columns, a warp mostly waits for its own numbers. So each holds few rows, which
/// leaves room for more warps: of 17 million rows of 32 columns in f64 a solve takes 2.8 ms, where 8 warps a
/// multiprocessor with 32 rows each took 3.1 (H200).
inline constexpr int narrow_rows = 16;  // that a warp holds at a time
inline constexpr int narrow_warps = 6;  // of a block
inline constexpr int narrow_blocks = 2; // of a multiprocessor
inline i64 narrow_grid(i64 rows, int multiprocessors) {
  constexpr i64 at_once = narrow_warps * narrow_rows;
  return std::clamp<i64>((rows + at_once - 1) / at_once, 1, i64{narrow_blocks} * multiprocessors);
}
/// What each of those blocks leaves: a Gram matrix and two rows of sums.
inline constexpr int narrow_part = (mma_tile + 2) * mma_tile;

/// Blocks that sum over the rows of columns.
inline i64 column_blocks(i64 rows, i64 columns) {
  return std::clamp<i64>(rows / (8 * (block_threads / lanes_for(columns))), 1, most_blocks);
}

/// Up to this rank one block factors the normal equations: beyond it the host asks cuSOLVER, and how that went.
inline constexpr i64 small_rank = 64;

/// Rows of products that are kept apart while a matrix is multiplied.
inline constexpr i64 staged_bytes = i64{64} << 20;
inline i64 solve_staged_rows(i64 rows, i64 rank) { return std::clamp<i64>(staged_bytes / (8 * rank), 1, rows); }

/// The leading dimension of rows of 32 * tiles columns that a warp keeps in shared memory: four neighbouring rows are
/// in different banks.
constexpr int solve_ld(int tiles) { return tiles * mma_tile + 4; }

} // namespace td::kernels::cuda
