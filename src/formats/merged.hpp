// Some modes of a sparse tensor seen as one, whose rows are the cells that hold entries: combinations of the modes'
// indices.
#pragma once

#include "formats/footprint.hpp"
#include "formats/formats.hpp"

namespace td::formats {

/// Whether these modes of a tensor with so many entries can be merged: their index bits together must leave the cells'
/// marks small.
bool can_merge(std::span<const i64> dims, i64 nnz, std::span<const int> modes);

/// How the entries lie, about: combinations are counted among those that a hash picks, which hold 8,192 entries or
/// more. Entries need not be in order. Keeps a reference to them.
Combinations combinations_of(const Packed &packed, int threads);

struct SortedCells {
  Sorted sorted; // by the merged mode, which stands where the first of its modes stood
  Coo cells;     // what each of its rows is: an entry of value 1 a cell; the last mode is the cell's number
};

/// `modes` can be merged, and are not all. Their cells are numbered in the order of their indices, the first mode's
/// fastest. The packed values are lent: they are there again afterwards.
SortedCells build_sorted_cells(Packed &packed, std::span<const int> modes, const TileRule &tiles, int threads);

} // namespace td::formats
