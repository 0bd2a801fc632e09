// What a format takes, predicted from sizes before anything is stored. Bytes are doubles: sizes that fit nowhere do not
// overflow.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "formats/tiles.hpp"

namespace td::formats {

struct Footprint {
  double stored = 0;
  double building = 0; // what is needed besides, at the worst moment; the caller's arrays are not counted
};

/// How entries lie: in how many combinations of the modes' indices there is one, where of an index in mode m the lowest
/// dropped[m] bits do not count.
using Combinations = std::function<double(std::span<const int> dropped)>;
inline constexpr int all_bits = 63; // drops an index whole

/// What is expected if all places are equally likely.
Combinations spread_evenly(std::span<const i64> dims, i64 nnz);

/// Different entries, as far as what they take depends on them.
struct EntryShape {
  std::span<const i64> dims;
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  Combinations combinations;
  double while_sorted = 0; // bytes that are there besides until they are sorted
  i64 repeated = 0;        // entries besides at the same coordinates, which are merged into these

  /// The entries are spread evenly.
  EntryShape(std::span<const i64> dims, i64 nnz, ValueType type);
  EntryShape(std::span<const i64> dims, i64 nnz, ValueType type, Combinations combinations);
};

/// A copy sorted by a mode, or by a group of modes with the cells that they make.
struct CopySize {
  std::vector<i64> dims; // with the group's modes merged into one
  int mode = 0;          // by which it is sorted
  double cells = 0;      // of a group of several modes, else 0
  double rows = 0;       // nonempty ones, of all tiles together
  double tiles = 1;
  int key_bytes = 8;
  std::vector<int> bits; // of an index in a tile
  double stored = 0;
  double temporary = 0; // while it is made, besides the packed entries
};
CopySize copy_size(const EntryShape &x, std::span<const int> modes, const TileRule &tiles, int threads);
/// The view of such a copy, without pointers.
kernels::SortedView view_of(const CopySize &copy, i64 nnz, ValueType type);
/// Sets stored and temporary from all the rest.
void set_bytes(CopySize &copy, const EntryShape &x, std::span<const int> modes, int threads);

Footprint coo_footprint(const EntryShape &x, int threads);
Footprint blco_footprint(const EntryShape &x, int threads);
/// The copies are made one after the other.
Footprint sorted_footprint(const EntryShape &x, std::span<const CopySize> copies, int threads);
/// There is a copy by each mode.
Footprint sorted_footprint(const EntryShape &x, const TileRule &tiles, int threads);
Footprint dense_footprint(std::span<const i64> dims, ValueType type);

} // namespace td::formats
