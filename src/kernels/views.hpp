// Views of stored tensors, which kernels work on. Pointers are in the backend's memory unless said otherwise.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <variant>

#include "core/views.hpp"

namespace td::kernels {

/// Coordinates, 0-based, one array a mode.
struct CooView {
  std::span<const i64> dims; // host
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  const i64 *const *indices = nullptr; // [order]; the array of pointers is on the host
  const void *values = nullptr;
};

/// Where each mode's index stands in a linearized key: (key >> shift[m]) & ((1 << bits[m]) - 1).
struct KeyLayout {
  int order = 0;
  std::array<std::uint8_t, max_order> shift{};
  std::array<std::uint8_t, max_order> bits{};
};

/// BLCO (Nguyen et al. 2022): nonzeros in the order of their interleaved (ALTO) index; each keeps the low bits of its
/// indices in one 64-bit key of contiguous fields, and a block of them shares the upper bits.
struct BlcoView {
  std::span<const i64> dims; // host
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  KeyLayout layout;
  const u64 *keys = nullptr;
  const void *values = nullptr;
  i64 blocks = 0;
  const i64 *block_begin = nullptr; // [blocks + 1] first nonzero of each block
  const i64 *block_base = nullptr;  // [blocks * order] added to (or-ed with) the decoded indices
};

/// A copy sorted by one mode: nonempty rows, and for each its nonzeros' other indices as keys of 4, 8 or 16 bytes. The
/// sorted mode itself has no bits in the layout.
///
/// It may be cut into tiles, so that the rows of the other factors that a tile needs stay in a cache: entries are then
/// sorted by tile and within a tile by row, a key keeps the indices counted from where its tile begins, and what is
/// said of rows holds of a tile's segment of a row.
struct SortedView {
  std::span<const i64> dims; // host
  int mode = 0;
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  KeyLayout layout;
  int key_bytes = 8; // 4: keys are u32; 8: u64; 16: u128
  const void *keys = nullptr;
  const void *values = nullptr;
  i64 rows = 0;                   // nonempty rows, of all tiles together
  const i64 *row_index = nullptr; // [rows] ascending, in a tile those of its heavy rows and those of its light rows
  const i64 *row_begin = nullptr; // [rows + 1] first nonzero of each row
  i64 tiles = 1;
  const i64 *tile_begin = nullptr; // [tiles + 1] first row of each tile
  const i64 *tile_base = nullptr;  // [tiles * order] added to the decoded indices
  // These lists are for more than one tile. Rows that hold a large part of the nonzeros are heavy and come first in it.
  const i64 *tile_light = nullptr; // [tiles] first light row of each tile
  std::span<const i64> heavy_rows; // ascending
  std::span<const i64> heavy_cuts; // tiles that begin equal loads of the nonzeros in heavy rows, 0 to tiles
  std::span<const i64> light_cuts; // rows that begin equal loads of those in light rows, 0 to dims[mode]
  // The rows that hold entries where only some are there, as of a streamed tensor; else {0, 0}.
  Range rows_there;

  /// Rows of another mode's factor that the entries of a tile refer to.
  i64 rows_in_tile(int other) const {
    const auto m = static_cast<std::size_t>(other);
    return layout.bits[m] > 62 ? dims[m] : std::min(dims[m], i64{1} << layout.bits[m]);
  }
};

/// All elements. Without strides the first index runs fastest and there are no gaps. With strides, which are at least 1
/// and let no two elements share a place, modes may be in any order in memory, and gaps between elements are never
/// read. Elements are counted, as in ranges of entries, in the order of memory: the mode of the smallest stride
/// fastest.
struct DenseView {
  std::span<const i64> dims; // host
  ValueType type = ValueType::f64;
  const void *values = nullptr;
  std::span<const i64> strides = {}; // host; in elements; empty: no gaps
  double largest = 0;                // magnitude of an element; 0: not known
};

/// The combinations of some modes' indices, first index fastest, with a row each: a partial product of MTTKRP.
struct CellsView {
  std::span<const i64> dims; // host
  ConstMatrix rows;          // [product of dims] x rank

  i64 count() const noexcept { return rows.rows; }
};

using TensorView = std::variant<CooView, BlcoView, SortedView, DenseView>;

inline std::span<const i64> dims_of(const TensorView &x) {
  return std::visit([](const auto &v) { return v.dims; }, x);
}
inline ValueType type_of(const TensorView &x) {
  return std::visit([](const auto &v) { return v.type; }, x);
}
/// Stored entries; of a dense tensor its elements.
i64 entries_of(const TensorView &x);

} // namespace td::kernels
