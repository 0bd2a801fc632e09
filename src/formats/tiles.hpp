// Tiles of sorted copies: ranges of the other modes, so that the factor rows which a tile needs stay in a near memory.
// They are given as the bits that each mode's index keeps within a tile; all of them is no cut.
#pragma once

#include <span>
#include <vector>

#include "kernels/tuning.hpp"

namespace td::formats {

/// This says which tiles copies are cut into.
struct TileRule {
  enum class Kind { cpu, gpu, none, rows }; // what pays for the kernels of either; none; by `rows`
  Kind kind = Kind::cpu;
  i64 rows = 0; // of the other factors together that a tile needs at most, if modes can be cut so far
  // These are for a GPU:
  ValueType type = ValueType::f64; // of the values
  bool f32_rows = false;           // of factors, for values in f64, where copying the factors pays
  bool f64_sums = false;           // of terms in f64, for values in f32
  kernels::Chip chip = {};
};

/// Throws Status::unsupported for `rows` so few that tiles would be too many.
std::vector<int> tile_bits(const TileRule &rule, std::span<const i64> dims, int mode, i64 nnz);

/// Chooses for the CPU's kernels: one tile where the rows of the other factors fit a cache anyway or rows would be cut
/// into segments of few entries.
std::vector<int> tile_bits(std::span<const i64> dims, int mode, i64 nnz);

/// Chooses for the kernels of a GPU: tiles whose rows of the other factors fit a multiprocessor's shared memory.
/// `row_type` is that of the numbers in these rows, `term_type` of what is made of them.
std::vector<int> gpu_tile_bits(const kernels::Chip &chip, std::span<const i64> dims, int mode, i64 nnz,
                               ValueType row_type, ValueType term_type);

/// Seconds of one GPU for MTTKRP in all modes over sorted copies in these tiles, as gpu_tile_bits counts them.
double gpu_seconds(const TileRule &rule, std::span<const i64> dims, i64 nnz);

/// The number is rounded where it is beyond 2^53.
double tiles_of(std::span<const i64> dims, int mode, std::span<const int> bits);

} // namespace td::formats
