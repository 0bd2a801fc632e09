// What a sorted copy knows of its tiles and rows besides the entries; on the host, wherever the entries are sorted.
#pragma once

#include <vector>

#include "formats/formats.hpp"
#include "kernels/building.hpp"

namespace td::formats {

/// How packed keys become a copy's tiles and keys.
struct CopyKeys {
  std::vector<kernels::TileField> tile_fields;
  std::vector<kernels::BitMove> moves; // from a packed key to the copy's
  i64 tiles = 1;
};

/// A copy that has no entries yet.
Sorted empty_sorted(std::span<const i64> dims, int mode, std::span<const int> bits_in_tile);
CopyKeys copy_keys(const Sorted &copy, const kernels::KeyLayout &packed, std::span<const int> bits_in_tile);

/// Calls f with a number of the type of a copy's keys.
template <class F> decltype(auto) dispatch_kept(int key_bytes, F &&f) {
  if (key_bytes == 4)
    return f(std::uint32_t{});
  if (key_bytes == 8)
    return f(u64{});
  return f(u128{});
}

/// The rows of a copy with more than one tile: which hold a large part of the nonzeros, and the loads of threads.
class RowOrder {
public:
  RowOrder() = default;
  /// `count`: the nonzeros of each row.
  RowOrder(Buffer<i64> count, i64 nnz);

  /// Ascending. A tile has them first, then the light ones.
  const std::vector<i64> &heavy_rows() const noexcept { return heavy_; }
  /// Calls f(at, row) for the rows of a mode in the order in which a tile's are stored.
  template <class F> void each_row(i64 dim, F &&f) const {
    i64 at = 0;
    for (const i64 row : heavy_)
      f(at++, row);
    i64 begin = 0;
    const auto light = [&](i64 end) {
      for (i64 row = begin; row < end; ++row)
        f(at++, row);
    };
    for (const i64 row : heavy_) {
      light(row);
      begin = row + 1;
    }
    light(dim);
  }
  /// Fills in where light rows begin in the tiles of a copy whose rows are there; gives the entries of heavy rows in
  /// each.
  Buffer<i64> fill_tile_light(Sorted &copy) const;
  /// Fills the lists by which threads partition the work on its tiles.
  void fill_loads(Sorted &copy, std::span<const i64> heavy_entries) const;

private:
  bool is_heavy(i64 row) const noexcept { return count_[row] > most_light_; }
  void fill_light_cuts(Sorted &copy) const;
  static void fill_heavy_cuts(Sorted &copy, std::span<const i64> heavy_entries);

  Buffer<i64> count_;
  i64 most_light_ = 0; // nonzeros of a light row
  std::vector<i64> heavy_;
};

/// Fills in where the tiles begin in each mode.
void fill_tile_base(Sorted &copy, const CopyKeys &keys);

/// Loads that a copy's tiles are partitioned into, of heavy rows and of light ones.
inline constexpr i64 heavy_loads = 32;
inline constexpr i64 light_loads = 1024;

} // namespace td::formats
