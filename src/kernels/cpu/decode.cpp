#include "kernels/cpu/decode.hpp"

#include <algorithm>

namespace td::kernels::cpu {

namespace {

simd::Field field_of(const KeyLayout &layout, int mode, i64 base, i64 scale) {
  const auto m = static_cast<std::size_t>(mode);
  return {layout.shift[m], layout.bits[m], base, scale};
}

} // namespace

i64 part_holding(const i64 *begin, i64 parts, i64 k) {
  return std::upper_bound(begin, begin + parts + 1, k) - begin - 1;
}

void decode(const CooView &x, int mode, Range entries, i64 scale, i64 *to) {
  simd::decode(x.indices[mode] + entries.begin, entries.size(), {0, 0, 0, scale}, to);
}

void decode(const BlcoView &x, int mode, Range entries, i64 scale, i64 *to) {
  const auto order = static_cast<i64>(x.dims.size());
  i64 block = part_holding(x.block_begin, x.blocks, entries.begin);
  for (i64 k = entries.begin; k < entries.end; ++block) {
    const i64 end = std::min(entries.end, x.block_begin[block + 1]);
    const simd::Field field = field_of(x.layout, mode, x.block_base[block * order + mode], scale);
    simd::decode(x.keys + k, end - k, field, to + (k - entries.begin));
    k = end;
  }
}

void decode(const SortedView &x, int mode, Range entries, i64 scale, i64 *to) {
  if (mode != x.mode) {
    const simd::Field field = field_of(x.layout, mode, 0, scale);
    if (x.key_bytes == 8)
      simd::decode(static_cast<const u64 *>(x.keys) + entries.begin, entries.size(), field, to);
    else
      simd::decode(static_cast<const u128 *>(x.keys) + entries.begin, entries.size(), field, to);
    return;
  }
  i64 row = part_holding(x.row_begin, x.rows, entries.begin);
  for (i64 k = entries.begin; k < entries.end; ++row) {
    const i64 end = std::min(entries.end, x.row_begin[row + 1]);
    std::fill(to + (k - entries.begin), to + (end - entries.begin), x.row_index[row] * scale);
    k = end;
  }
}

} // namespace td::kernels::cpu
