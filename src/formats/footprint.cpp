#include "formats/footprint.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/memory.hpp"
#include "formats/bin_sort.hpp"
#include "formats/formats.hpp"
#include "formats/key.hpp"
#include "formats/parts.hpp"
#include "kernels/gpu_model.hpp"

namespace td::formats {

namespace {

double value_bytes(ValueType type) { return static_cast<double>(size_of(type)); }

/// Packed keys and values.
double packed_bytes(const EntryShape &x) {
  return static_cast<double>(x.nnz) * (key_bytes_for(linear_bits(x.dims)) + value_bytes(x.type));
}

/// What is there at most until packed entries are sorted and those at the same coordinates are merged: beside all keys
/// and values what sorting takes; of what is kept where runs begin and sums; then keys instead of the values that were.
double sorting_bytes(const EntryShape &x, int threads) {
  const int bits = linear_bits(x.dims);
  const auto kept = static_cast<double>(x.nnz);
  const double all = kept + static_cast<double>(x.repeated);
  const double key = key_bytes_for(bits);
  const double value = value_bytes(x.type);
  const double place = all <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
  double besides = bin_sort_bytes(x.nnz + x.repeated, bits, key + value, threads);
  if (x.repeated > 0)
    besides = std::max({besides, kept * (place + value), kept * (place + value + key) - all * value});
  return all * (key + value) + besides + x.while_sorted;
}

double dims_bytes(std::size_t order) { return 8 * static_cast<double>(order); }

/// Two u64 for 64 numbers.
double marks_bytes(int bits) { return 16 * (std::exp2(bits) / 64 + 1); }

/// The workspace of sorting packed entries of these dims by rows (Builder in sorted.cpp).
double counting_bytes(const EntryShape &x, std::span<const i64> dims, double places, double tiles, double dim,
                      int threads) {
  const auto n = static_cast<double>(x.nnz);
  const double most_parts = std::floor(std::max(1024.0, 2 * n) / places);
  if (most_parts < 1 && tiles <= 1)
    return n * (2 * key_bytes_for(linear_bits(dims)) + value_bytes(x.type));
  const double parts = std::clamp(most_parts, 1.0, static_cast<double>(parts_for(x.nnz, threads)));
  const double counter = n <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
  return counter * (parts + 1) * places + (tiles > 1 ? 2 * 8 * dim : 0);
}

} // namespace

Combinations spread_evenly(std::span<const i64> dims, i64 nnz) {
  return [dims, nnz](std::span<const int> dropped) {
    double places = 1;
    for (std::size_t m = 0; m < dims.size(); ++m)
      places *= static_cast<double>(((dims[m] - 1) >> std::min(dropped[m], 62)) + 1);
    return kernels::gpu::expected_rows(places, static_cast<double>(nnz));
  };
}

EntryShape::EntryShape(std::span<const i64> d, i64 n, ValueType t) : EntryShape(d, n, t, spread_evenly(d, n)) {}

EntryShape::EntryShape(std::span<const i64> d, i64 n, ValueType t, Combinations c)
    : dims(d), nnz(n), type(t), combinations(std::move(c)) {}

CopySize copy_size(const EntryShape &x, std::span<const int> modes, const TileRule &tiles, int threads) {
  const auto inside = [&](int m) { return std::find(modes.begin(), modes.end(), m) != modes.end(); };
  CopySize copy;
  std::vector<int> dropped(x.dims.size(), all_bits); // at first of all but the group's modes
  for (const int m : modes)
    dropped[static_cast<std::size_t>(m)] = 0;
  if (modes.size() > 1)
    copy.cells = std::max(1.0, std::round(x.combinations(dropped)));
  std::vector<std::size_t> mode_at;
  for (int m = 0; m < static_cast<int>(x.dims.size()); ++m) {
    if (inside(m) && m != modes.front())
      continue;
    if (m == modes.front())
      copy.mode = static_cast<int>(copy.dims.size());
    const bool merged = m == modes.front() && modes.size() > 1;
    copy.dims.push_back(merged ? saturated(copy.cells) : x.dims[static_cast<std::size_t>(m)]);
    mode_at.push_back(static_cast<std::size_t>(m));
  }
  const std::vector<int> in_tile = tile_bits(tiles, copy.dims, copy.mode, x.nnz);
  const SortedShape shape = sorted_shape(copy.dims, copy.mode, in_tile);
  copy.tiles = shape.tiles;
  copy.bits = in_tile;
  copy.key_bytes = shape.key_bytes;
  for (std::size_t k = 0; k < mode_at.size(); ++k)
    if (static_cast<int>(k) != copy.mode)
      dropped[mode_at[k]] = in_tile[k] < index_bits(copy.dims[k]) ? in_tile[k] : all_bits;
  copy.rows = x.combinations(dropped);
  set_bytes(copy, x, modes, threads);
  return copy;
}

kernels::SortedView view_of(const CopySize &copy, i64 nnz, ValueType type) {
  kernels::SortedView x;
  x.dims = copy.dims;
  x.mode = copy.mode;
  x.nnz = nnz;
  x.type = type;
  x.key_bytes = copy.key_bytes;
  x.layout.order = static_cast<int>(copy.bits.size());
  for (std::size_t m = 0; m < copy.bits.size(); ++m)
    x.layout.bits[m] = static_cast<std::uint8_t>(copy.bits[m]);
  x.rows = saturated(copy.rows);
  x.tiles = saturated(copy.tiles);
  return x;
}

void set_bytes(CopySize &copy, const EntryShape &x, std::span<const int> modes, int threads) {
  const auto n = static_cast<double>(x.nnz);
  const auto dim = static_cast<double>(copy.dims[static_cast<std::size_t>(copy.mode)]);
  const auto order = static_cast<double>(copy.dims.size());
  copy.stored = n * (copy.key_bytes + value_bytes(x.type)) + 16 * copy.rows + 8 + 8 * (copy.tiles + 1) +
                8 * copy.tiles * order + tile_load_bytes(copy.tiles) + dims_bytes(copy.dims.size());
  copy.temporary = counting_bytes(x, copy.dims, copy.tiles * dim, copy.tiles, dim, threads);
  if (modes.size() > 1) {
    int group_bits = 0;
    for (const int m : modes)
      group_bits += index_bits(x.dims[static_cast<std::size_t>(m)]);
    copy.stored +=
        copy.cells * (8 * static_cast<double>(modes.size() + 1) + value_bytes(x.type)) + dims_bytes(modes.size() + 1);
    copy.temporary += marks_bytes(group_bits) + n * key_bytes_for(linear_bits(copy.dims));
  }
}

Footprint coo_footprint(const EntryShape &x, int threads) {
  const auto n = static_cast<double>(x.nnz);
  Footprint f;
  f.stored = n * (8 * static_cast<double>(x.dims.size()) + value_bytes(x.type)) + dims_bytes(x.dims.size());
  if (linear_bits(x.dims) <= max_linear_bits) {
    f.building = std::max(sorting_bytes(x, threads) - f.stored, packed_bytes(x)); // which stand beside the coordinates
  } else {
    const double all = n + static_cast<double>(x.repeated);
    f.building = std::max(4 * 8 * all - f.stored, 8 * (all + n)); // an order and keys, twice; then the order and run
                                                                  // borders
  }
  return f;
}

Footprint blco_footprint(const EntryShape &x, int threads) {
  const auto n = static_cast<double>(x.nnz);
  const auto order = static_cast<double>(x.dims.size());
  const bool wide = linear_bits(x.dims) > 64;
  const double blocks = wide ? x.combinations(blco_bits(x.dims)) : std::min(n, 1.0);
  Footprint f;
  f.stored = n * (8 + value_bytes(x.type)) + 8 * (blocks + 1) + 8 * blocks * order + dims_bytes(x.dims.size());
  f.building = std::max(sorting_bytes(x, threads) - f.stored, wide ? 16 * n : 0.0); // wide keys beside the new ones
  return f;
}

Footprint sorted_footprint(const EntryShape &x, std::span<const CopySize> copies, int threads) {
  const double packed = packed_bytes(x);
  Footprint f;
  double peak = sorting_bytes(x, threads);
  for (const CopySize &copy : copies) {
    f.stored += copy.stored;
    peak = std::max(peak, packed + f.stored + copy.temporary);
  }
  f.building = peak - f.stored;
  return f;
}

Footprint sorted_footprint(const EntryShape &x, const TileRule &tiles, int threads) {
  std::vector<CopySize> copies;
  for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode)
    copies.push_back(copy_size(x, std::vector<int>{mode}, tiles, threads));
  return sorted_footprint(x, copies, threads);
}

Footprint dense_footprint(std::span<const i64> dims, ValueType type) {
  double bytes = value_bytes(type);
  for (const i64 dim : dims)
    bytes *= static_cast<double>(dim);
  return {bytes + dims_bytes(dims.size()), 0};
}

} // namespace td::formats
