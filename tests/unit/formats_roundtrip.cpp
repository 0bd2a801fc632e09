// Every format gives back the entries that it was built from, whatever the order, the bits and the threads.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "formats/formats.hpp"
#include "formats/key.hpp"
#include "formats_random.hpp"

namespace td {
namespace {

using formats::Coo;
using test::packed_of;
using test::sorted_of;
using Entry = std::pair<std::vector<i64>, double>;

std::vector<Entry> entries_of(const kernels::CooView &x) {
  std::vector<Entry> entries;
  for (i64 k = 0; k < x.nnz; ++k) {
    std::vector<i64> coordinate;
    for (std::size_t m = 0; m < x.dims.size(); ++m)
      coordinate.push_back(x.indices[m][k]);
    entries.emplace_back(std::move(coordinate), x.type == ValueType::f32
                                                    ? static_cast<double>(static_cast<const float *>(x.values)[k])
                                                    : static_cast<const double *>(x.values)[k]);
  }
  return entries;
}

std::vector<Entry> ordered(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// The oracle: sums by coordinate in a map.
template <class Index, class Value> std::vector<Entry> sums_of(const test::CallerEntries<Index, Value> &e) {
  std::map<std::vector<i64>, double> sums;
  for (std::size_t k = 0; k < e.values.size(); ++k) {
    std::vector<i64> coordinate;
    for (const auto &column : e.columns)
      coordinate.push_back(static_cast<i64>(column[k]) - e.base);
    sums[coordinate] += static_cast<double>(e.values[k]);
  }
  return {sums.begin(), sums.end()};
}

struct Shape {
  std::vector<i64> dims;
  i64 nnz;
};

std::vector<Shape> shapes() {
  const i64 huge = i64{1} << 31;
  std::vector<Shape> all = {
      {{4, 3}, 20},                                                          // repeats for certain
      {{1, 1}, 3},                                                           // no bits at all
      {{1, 5, 1}, 9},                                                        // modes without bits
      {{27, 27, 27}, 40000},                                                 // several parts in parallel
      {{1000003, 7, 500}, 40000},                                            // long and short
      {{i64{1} << 32, i64{1} << 32}, 300},                                   // 64 bits exactly
      {{i64{1} << 32, (i64{1} << 32) + 1}, 300},                             // 65 bits
      {{(i64{1} << 62) + 5, 9}, 200},                                        // one mode almost fills a key
      {{(i64{1} << 62) + 5, (i64{1} << 62) + 5}, 9},                         // 126 bits
      {{i64{1} << 32, i64{1} << 32, i64{1} << 32, i64{1} << 32}, 300},       // 128 bits exactly
      {{i64{1} << 32, i64{1} << 32, i64{1} << 32, (i64{1} << 32) + 1}, 300}, // 129 bits
      {std::vector<i64>(16, huge), 300},                                     // 496 bits
      {{3, 4, 2}, 0},
      {std::vector<i64>(16, huge), 0},
  };
  for (std::size_t order = 2; order <= 16; ++order)
    all.push_back({std::vector<i64>(order, 3), 200});
  all.push_back({std::vector<i64>(64, 2), 50}); // one bit a mode, at the highest order
  return all;
}

std::vector<int> whole_bits(std::span<const i64> dims) {
  std::vector<int> bits;
  for (const i64 d : dims)
    bits.push_back(index_bits(d));
  return bits;
}

/// Rows are not empty, and ascend among a tile's heavy ones and among its light ones.
void check_rows(const kernels::SortedView &view) {
  EXPECT_EQ(view.row_begin[view.rows], view.nnz);
  EXPECT_EQ(view.tile_begin[view.tiles], view.rows);
  for (i64 row = 1; row < view.rows; ++row)
    EXPECT_LT(view.row_begin[row - 1], view.row_begin[row]);
  const auto expect_ascending = [&](i64 begin, i64 end) {
    for (i64 row = begin + 1; row < end; ++row)
      EXPECT_LT(view.row_index[row - 1], view.row_index[row]);
  };
  for (i64 tile = 0; tile < view.tiles; ++tile) {
    const i64 light = view.tiles > 1 ? view.tile_light[tile] : view.tile_begin[tile];
    expect_ascending(view.tile_begin[tile], light);
    expect_ascending(light, view.tile_begin[tile + 1]);
  }
}

template <class Index, class Value> void check_formats(const Shape &shape, std::int32_t base, int threads) {
  const unsigned seed = 20240607;
  SCOPED_TRACE(testing::Message() << "order " << shape.dims.size() << ", dims[0] " << shape.dims[0] << ", nnz "
                                  << shape.nnz << ", base " << base << ", threads " << threads << ", seed " << seed);
  auto e = test::random_entries<Index, Value>(shape.dims, shape.nnz, base, seed);
  const auto expected = sums_of(e);
  formats::check_entries(e.view(), threads);
  const auto canonical = formats::build_canonical(e.view(), false, threads);
  const auto in_order = entries_of(canonical.coo.view());
  EXPECT_EQ(ordered(in_order), expected);
  EXPECT_EQ(canonical.duplicates, shape.nnz - static_cast<i64>(expected.size()));
  for (std::size_t m = 0; m < shape.dims.size(); ++m) {
    const int mode = static_cast<int>(m);
    if (m > 2 && m + 1 < shape.dims.size())
      continue;
    const Coo fibers = formats::build_fibers(canonical.coo.view(), mode, threads);
    EXPECT_EQ(ordered(entries_of(fibers.view())), expected) << "mode " << mode;
  }
  if (formats::linear_bits(shape.dims) > formats::max_linear_bits)
    return;

  const auto blco = formats::build_blco(packed_of(canonical.coo, threads), threads);
  EXPECT_EQ(entries_of(formats::decode(blco.view(), threads).view()), in_order);
  for (std::size_t m = 0; m < shape.dims.size(); ++m) {
    const int mode = static_cast<int>(m);
    const auto packed = packed_of(canonical.coo, threads);
    for (const bool tiled : {false, true}) {
      if (tiled && (shape.dims.size() > 4 || shape.dims[m] > 10000)) // so that row counters stay few
        continue;
      auto bits = whole_bits(shape.dims);
      for (std::size_t other = 0; tiled && other < bits.size(); ++other)
        bits[other] = std::max(bits[other] - (bits[other] < 30 ? 2 : 0), 0);
      const auto sorted = formats::build_sorted(packed, mode, bits, threads);
      check_rows(sorted.view());
      EXPECT_EQ(sorted.view().nnz, canonical.coo.values.size());
      EXPECT_EQ(entries_of(formats::decode(sorted.view(), threads).view()), in_order)
          << "mode " << m << ", tiled " << tiled;
    }
    EXPECT_EQ(entries_of(formats::decode(sorted_of(packed, mode, threads).view(), threads).view()), in_order);
  }
}

TEST(formats, give_back_their_entries) {
  for (const Shape &shape : shapes())
    for (const int threads : test::light() ? std::vector{1, 3} : std::vector{1, 2, 3})
      check_formats<i64, double>(shape, threads % 2, threads);
}

TEST(formats, take_every_index_and_value_type) {
  const Shape shape{{50, 40, 30}, 3000};
  for (const std::int32_t base : {0, 1}) {
    check_formats<std::int32_t, float>(shape, base, 2);
    check_formats<std::int32_t, double>(shape, base, 2);
    check_formats<i64, float>(shape, base, 2);
    check_formats<i64, double>(shape, base, 2);
  }
}

} // namespace
} // namespace td
