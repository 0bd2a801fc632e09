// What each format shows of itself.
#include "formats/formats.hpp"

namespace td::formats {

namespace {

i64 bytes_of(const std::vector<i64> &dims) { return static_cast<i64>(dims.size() * sizeof(i64)); }

std::span<const i64> span_of(const Buffer<i64> &b) { return {b.data(), static_cast<std::size_t>(b.size())}; }

} // namespace

kernels::CooView Coo::view() const { return {dims, values.size(), values.type(), columns.data(), values.data()}; }

i64 Coo::bytes() const {
  i64 total = bytes_of(dims) + values.bytes();
  for (const auto &column : indices)
    total += column.bytes();
  return total;
}

kernels::BlcoView Blco::view() const {
  return {dims,          values.size(),          values.type(),      layout,           keys.data(),
          values.data(), block_begin.size() - 1, block_begin.data(), block_base.data()};
}

i64 Blco::bytes() const {
  return bytes_of(dims) + keys.bytes() + values.bytes() + block_begin.bytes() + block_base.bytes();
}

kernels::SortedView Sorted::view() const {
  return {dims,
          mode,
          values.size(),
          values.type(),
          layout,
          key_bytes,
          keys.data(),
          values.data(),
          row_index.size(),
          row_index.data(),
          row_begin.data(),
          tile_begin.size() - 1,
          tile_begin.data(),
          tile_base.data(),
          tile_light.data(),
          span_of(heavy_rows),
          span_of(heavy_cuts),
          span_of(light_cuts),
          {}};
}

i64 Sorted::bytes() const {
  return bytes_of(dims) + keys.bytes() + values.bytes() + row_index.bytes() + row_begin.bytes() + tile_begin.bytes() +
         tile_base.bytes() + tile_light.bytes() + heavy_rows.bytes() + heavy_cuts.bytes() + light_cuts.bytes();
}

kernels::DenseView Dense::view() const {
  return {dims, values.type(), lent != nullptr ? lent : values.data(), strides};
}

i64 Dense::bytes() const { return bytes_of(dims) + bytes_of(strides) + values.bytes(); }

} // namespace td::formats
