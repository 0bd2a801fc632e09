#include "kernels/cpu/batch.hpp"

#include <algorithm>

namespace td::kernels::cpu {

namespace {

simd::Field field_of(const KeyLayout &layout, int mode, i64 base) {
  const auto m = static_cast<std::size_t>(mode);
  return {layout.shift[m], layout.bits[m], base};
}

} // namespace

i64 part_holding(const i64 *begin, i64 parts, i64 k) {
  return std::upper_bound(begin, begin + parts + 1, k) - begin - 1;
}

void decode(const CooView &x, int mode, Range entries, simd::Index *to) {
  simd::decode(x.indices[mode] + entries.begin, entries.size(), to);
}

void decode(const BlcoView &x, int mode, Range entries, simd::Index *to) {
  const auto order = static_cast<i64>(x.dims.size());
  i64 block = part_holding(x.block_begin, x.blocks, entries.begin);
  for (i64 k = entries.begin; k < entries.end; ++block) {
    const i64 end = std::min(entries.end, x.block_begin[block + 1]);
    const simd::Field field = field_of(x.layout, mode, x.block_base[block * order + mode]);
    simd::decode(x.keys + k, end - k, field, to + (k - entries.begin));
    k = end;
  }
}

void decode(const SortedView &x, int mode, Range entries, simd::Index *to) {
  i64 row = part_holding(x.row_begin, x.rows, entries.begin);
  if (mode == x.mode) {
    for (i64 k = entries.begin; k < entries.end; ++row) {
      const i64 end = std::min(entries.end, x.row_begin[row + 1]);
      std::fill(to + (k - entries.begin), to + (end - entries.begin), static_cast<simd::Index>(x.row_index[row]));
      k = end;
    }
    return;
  }
  for (i64 tile = part_holding(x.tile_begin, x.tiles, row), k = entries.begin; k < entries.end; ++tile) {
    const i64 end = std::min(entries.end, x.row_begin[x.tile_begin[tile + 1]]);
    decode_tile(x, tile, mode, {k, end}, to + (k - entries.begin));
    k = end;
  }
}

void decode_tile(const SortedView &x, i64 tile, int mode, Range entries, simd::Index *to) {
  const i64 base = x.tile_base[tile * static_cast<i64>(x.dims.size()) + mode];
  const simd::Field field = field_of(x.layout, mode, base);
  const i64 k = entries.begin;
  if (x.key_bytes == 4)
    simd::decode(static_cast<const std::uint32_t *>(x.keys) + k, entries.size(), field, to);
  else if (x.key_bytes == 8)
    simd::decode(static_cast<const u64 *>(x.keys) + k, entries.size(), field, to);
  else
    simd::decode(static_cast<const u128 *>(x.keys) + k, entries.size(), field, to);
}

} // namespace td::kernels::cpu
