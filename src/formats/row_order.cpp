#include "formats/row_order.hpp"

#include <algorithm>
#include <numeric>

#include "formats/key.hpp"
#include "formats/parts.hpp"

namespace td::formats {

namespace {

constexpr i64 heavy_part = 256; // a row of more than this part of the nonzeros is heavy

constexpr int kept_bytes_for(int bits) { return bits <= 32 ? 4 : key_bytes_for(bits); }

} // namespace

Sorted empty_sorted(std::span<const i64> dims, int mode, std::span<const int> bits_in_tile) {
  Sorted s;
  s.dims.assign(dims.begin(), dims.end());
  s.mode = mode;
  std::vector<int> bits(bits_in_tile.begin(), bits_in_tile.end());
  bits[static_cast<std::size_t>(mode)] = 0;
  s.layout = packed_layout(bits);
  s.key_bytes = kept_bytes_for(total_bits(s.layout));
  return s;
}

CopyKeys copy_keys(const Sorted &copy, const kernels::KeyLayout &packed, std::span<const int> bits_in_tile) {
  CopyKeys all;
  for (int m = 0; m < packed.order; ++m) {
    const auto i = static_cast<std::size_t>(m);
    const int bits = packed.bits[i];
    if (m == copy.mode || bits == 0)
      continue;
    const int kept = bits_in_tile[i];
    if (kept < bits) {
      all.tile_fields.push_back({packed.shift[i] + kept, bits - kept, all.tiles, m});
      all.tiles *= ((copy.dims[i] - 1) >> kept) + 1;
    }
    all.moves.push_back({packed.shift[i], copy.layout.shift[i], kept});
  }
  return all;
}

void fill_tile_base(Sorted &copy, const CopyKeys &keys) {
  const auto order = static_cast<i64>(copy.dims.size());
  copy.tile_base = Buffer<i64>::zeros(keys.tiles * order, "where tiles begin");
  for (const kernels::TileField &field : keys.tile_fields) {
    const auto m = static_cast<std::size_t>(field.mode);
    const int kept = copy.layout.bits[m];
    const i64 count = ((copy.dims[m] - 1) >> kept) + 1;
    for (i64 tile = 0; tile < keys.tiles; ++tile)
      copy.tile_base[tile * order + field.mode] = (tile / field.stride % count) << kept;
  }
}

RowOrder::RowOrder(Buffer<i64> count, i64 nnz) : count_(std::move(count)), most_light_(nnz / heavy_part) {
  for (i64 row = 0; row < count_.size(); ++row)
    if (is_heavy(row))
      heavy_.push_back(row);
}

Buffer<i64> RowOrder::fill_tile_light(Sorted &copy) const {
  const i64 tiles = copy.tile_begin.size() - 1;
  copy.tile_light = Buffer<i64>(tiles, "where light rows begin");
  Buffer<i64> entries(tiles, "nonzeros of heavy rows");
  for (i64 tile = 0; tile < tiles; ++tile) {
    i64 slot = copy.tile_begin[tile];
    while (slot < copy.tile_begin[tile + 1] && is_heavy(copy.row_index[slot]))
      ++slot;
    copy.tile_light[tile] = slot;
    entries[tile] = copy.row_begin[slot] - copy.row_begin[copy.tile_begin[tile]];
  }
  return entries;
}

void RowOrder::fill_loads(Sorted &copy, std::span<const i64> heavy_entries) const {
  copy.heavy_rows = Buffer<i64>(std::ssize(heavy_), "heavy rows");
  std::copy(heavy_.begin(), heavy_.end(), copy.heavy_rows.data());
  fill_light_cuts(copy);
  fill_heavy_cuts(copy, heavy_entries);
}

void RowOrder::fill_light_cuts(Sorted &copy) const {
  const i64 dim = count_.size();
  i64 nonzeros = std::accumulate(count_.begin(), count_.end(), i64{0});
  for (const i64 row : heavy_)
    nonzeros -= count_[row];
  copy.light_cuts = Buffer<i64>(light_loads + 1, "loads of light rows");
  i64 row = 0;
  i64 before = 0;
  for (i64 load = 0; load < light_loads; ++load) {
    const i64 target = part_of({0, nonzeros}, load, light_loads).begin;
    for (; row < dim && before < target; ++row)
      before += is_heavy(row) ? 0 : count_[row];
    copy.light_cuts[load] = load == 0 ? 0 : row;
  }
  copy.light_cuts[light_loads] = dim;
}

void RowOrder::fill_heavy_cuts(Sorted &copy, std::span<const i64> heavy_entries) {
  const auto tiles = static_cast<i64>(heavy_entries.size());
  Buffer<i64> before(tiles + 1, "nonzeros of heavy rows");
  before[0] = 0;
  for (i64 tile = 0; tile < tiles; ++tile)
    before[tile + 1] = before[tile] + heavy_entries[static_cast<std::size_t>(tile)];
  const i64 loads = std::min(heavy_loads, tiles);
  copy.heavy_cuts = Buffer<i64>(loads + 1, "loads of heavy rows");
  for (i64 load = 0; load < loads; ++load) {
    const i64 target = part_of({0, before[tiles]}, load, loads).begin;
    copy.heavy_cuts[load] = load == 0 ? 0 : std::lower_bound(before.begin(), before.end(), target) - before.begin();
  }
  copy.heavy_cuts[loads] = tiles;
}

} // namespace td::formats
