// Where numbers lie in each format, on cases small enough to check by hand.
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "formats/formats.hpp"
#include "formats/key.hpp"
#include "formats/tiles.hpp"
#include "formats_random.hpp"

namespace td {
namespace {

using Entries = test::CallerEntries<i64, double>;
using test::packed_of;
using test::sorted_of;

template <class T> std::vector<T> list(const T *data, i64 n) { return {data, data + n}; }

std::vector<double> values_of(const ValueBuffer &values) { return list(values.as<double>(), values.size()); }

TEST(formats_layout, interleaves_level_by_level_shortest_mode_first) {
  // 8 x 2 x 4: level 0 of modes 1, 2, 0, level 1 of modes 2, 0, level 2 of mode 0.
  std::vector<int> modes;
  std::vector<int> levels;
  for (const auto [mode, level] : formats::interleaved_bits(std::vector<i64>{8, 2, 4})) {
    modes.push_back(mode);
    levels.push_back(level);
  }
  EXPECT_EQ(modes, (std::vector<int>{1, 2, 0, 2, 0, 0}));
  EXPECT_EQ(levels, (std::vector<int>{0, 0, 0, 1, 1, 2}));
}

TEST(formats_layout, canonical_order_of_a_4_by_4_matrix_is_mortons) {
  Entries e{{4, 4}, 1, {}, {}, {}};
  for (i64 i = 0; i < 4; ++i)
    for (i64 j = 0; j < 4; ++j)
      e.add({i, j}, static_cast<double>(10 * i + j));
  const auto c = formats::build_canonical(e.view(), true, 1);
  EXPECT_EQ(values_of(c.coo.values), (std::vector<double>{0, 10, 1, 11, 20, 30, 21, 31, 2, 12, 3, 13, 22, 32, 23, 33}));
  EXPECT_EQ(c.duplicates, 0);
}

TEST(formats_layout, beyond_128_bits_the_order_is_lexicographic) {
  const i64 d = i64{1} << 62;
  Entries e{{d, d, d}, 0, {}, {}, {}};
  e.add({5, 0, 1}, 3);
  e.add({4, d - 1, d - 1}, 2);
  e.add({4, d - 1, 0}, 1);
  e.add({5, 0, 1}, 0.5);
  const auto c = formats::build_canonical(e.view(), false, 1);
  EXPECT_EQ(values_of(c.coo.values), (std::vector<double>{1, 2, 3.5}));
  EXPECT_EQ(list(c.coo.columns[0], 3), (std::vector<i64>{4, 4, 5}));
  EXPECT_EQ(list(c.coo.columns[2], 3), (std::vector<i64>{0, d - 1, 1}));
  EXPECT_EQ(c.duplicates, 1);
}

TEST(formats_layout, blco_shares_the_bits_above_64_in_blocks) {
  // 32 + 33 bits: the highest bit of mode 1 is the 65th of the interleaved index.
  const i64 half = i64{1} << 32;
  Entries e{{half, 2 * half}, 0, {}, {}, {}};
  e.add({5, half + 7}, 2);
  e.add({5, 7}, 1);
  e.add({6, half + 7}, 3);
  const auto x = formats::build_blco(packed_of(e.view()), 1);
  EXPECT_EQ(list(x.block_begin.data(), x.block_begin.size()), (std::vector<i64>{0, 1, 3}));
  EXPECT_EQ(list(x.block_base.data(), x.block_base.size()), (std::vector<i64>{0, 0, 0, half}));
  const u64 seven = u64{7} << 32;
  EXPECT_EQ(list(x.keys.data(), 3), (std::vector<u64>{5 | seven, 5 | seven, 6 | seven}));
  EXPECT_EQ(values_of(x.values), (std::vector<double>{1, 2, 3}));
}

TEST(formats_layout, blco_of_up_to_64_bits_is_one_block) {
  Entries e{{1, 4, 2}, 0, {}, {}, {}};
  e.add({0, 3, 1}, 1);
  const auto x = formats::build_blco(packed_of(e.view()), 1);
  EXPECT_EQ(list(x.block_begin.data(), x.block_begin.size()), (std::vector<i64>{0, 1}));
  EXPECT_EQ(list(x.block_base.data(), x.block_base.size()), (std::vector<i64>{0, 0, 0}));
  EXPECT_EQ(x.layout.bits[0], 0);
  EXPECT_EQ(x.layout.shift[1], 0);
  EXPECT_EQ(x.layout.shift[2], 2);
  EXPECT_EQ(x.keys[0], 7U);
}

TEST(formats_layout, sorted_keeps_nonempty_rows_and_the_other_modes_keys) {
  Entries e{{3, 4}, 0, {}, {}, {}};
  e.add({2, 0}, 1);
  e.add({0, 3}, 2);
  e.add({1, 0}, 3);
  e.add({2, 3}, 4);
  const auto s = sorted_of(packed_of(e.view()), 1);
  EXPECT_EQ(list(s.row_index.data(), s.row_index.size()), (std::vector<i64>{0, 3}));
  EXPECT_EQ(list(s.row_begin.data(), s.row_begin.size()), (std::vector<i64>{0, 2, 4}));
  EXPECT_EQ(s.key_bytes, 4);
  EXPECT_EQ(s.layout.bits[1], 0);
  EXPECT_EQ(list(reinterpret_cast<const std::uint32_t *>(s.keys.data()), 4), (std::vector<std::uint32_t>{1, 2, 0, 2}));
  EXPECT_EQ(values_of(s.values), (std::vector<double>{3, 1, 2, 4}));
}

TEST(formats_layout, tiles_come_first_and_keys_count_from_where_they_begin) {
  Entries e{{2, 4, 3}, 0, {}, {}, {}};
  e.add({0, 0, 0}, 1);
  e.add({1, 1, 0}, 2);
  e.add({0, 3, 0}, 3);
  e.add({1, 2, 2}, 4);
  e.add({0, 1, 2}, 5);
  // Mode 1 in tiles of 2, mode 2 in tiles of 2 (0-1 and 2): four tiles, mode 1 running fastest.
  const auto s = formats::build_sorted(packed_of(e.view()), 0, std::vector<int>{1, 1, 1}, 1);
  EXPECT_EQ(values_of(s.values), (std::vector<double>{1, 2, 3, 5, 4}));
  EXPECT_EQ(list(s.tile_begin.data(), s.tile_begin.size()), (std::vector<i64>{0, 2, 3, 4, 5}));
  EXPECT_EQ(list(s.tile_base.data(), s.tile_base.size()), (std::vector<i64>{0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 2, 2}));
  EXPECT_EQ(list(s.row_index.data(), s.row_index.size()), (std::vector<i64>{0, 1, 0, 0, 1}));
  EXPECT_EQ(list(s.row_begin.data(), s.row_begin.size()), (std::vector<i64>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(list(reinterpret_cast<const std::uint32_t *>(s.keys.data()), 5),
            (std::vector<std::uint32_t>{0, 1, 1, 1, 0}));
  EXPECT_EQ(list(s.heavy_rows.data(), s.heavy_rows.size()), (std::vector<i64>{0, 1})); // of so few entries any is heavy
}

TEST(formats_layout, tiles_are_made_where_rows_stay_long) {
  // 160 rows of the two other factors fit a tile: 64 + 64, so 16 * 16 tiles of the 1024 x 1024.
  const std::vector<i64> dims{100, 1024, 1024};
  EXPECT_EQ(formats::tile_bits(dims, 0, 100 * 256 * 16), (std::vector<int>{7, 6, 6}));
  EXPECT_EQ(formats::tile_bits(dims, 0, 100 * 256 * 16 - 1),
            (std::vector<int>{7, 7, 7})); // 320 rows: half as many cuts
  EXPECT_EQ(formats::tile_bits(dims, 0, 1000), (std::vector<int>{7, 10, 10}));
  EXPECT_EQ(formats::tile_bits(std::vector<i64>{100, 60, 100}, 0, 1 << 30), (std::vector<int>{7, 6, 7}));
}

TEST(FormatsLayout, TilesByARule) {
  using Kind = formats::TileRule::Kind;
  const std::vector<i64> dims{100, 1024, 1000};
  const auto bits = [&](formats::TileRule rule, i64 nnz) { return formats::tile_bits(rule, dims, 0, nnz); };
  EXPECT_EQ(bits({Kind::none}, 1 << 30), (std::vector<int>{7, 10, 10}));
  EXPECT_EQ(bits({Kind::cpu}, 100 * 256 * 16), formats::tile_bits(dims, 0, 100 * 256 * 16));
  EXPECT_EQ(bits({Kind::gpu}, 1 << 30),
            formats::gpu_tile_bits(kernels::Chip{}, dims, 0, 1 << 30, ValueType::f64, ValueType::f64));
  EXPECT_EQ(bits({Kind::gpu, 0, ValueType::f32}, 1 << 30),
            formats::gpu_tile_bits(kernels::Chip{}, dims, 0, 1 << 30, ValueType::f32, ValueType::f32));
  EXPECT_EQ(bits({Kind::gpu, 0, ValueType::f32, false, true}, 1 << 30),
            formats::gpu_tile_bits(kernels::Chip{}, dims, 0, 1 << 30, ValueType::f32, ValueType::f64));
  EXPECT_EQ(bits({Kind::gpu, 0, ValueType::f64, true}, 1 << 30),
            formats::gpu_tile_bits(kernels::Chip{}, dims, 0, 1 << 30, ValueType::f32, ValueType::f64));
  // Rows are read in f32 where so many entries read them that copying 30 million rows pays.
  const std::vector<i64> few_rows{100, 30000000, 2000};
  const auto gathering = [&](i64 nnz) {
    return formats::tile_bits(formats::TileRule{Kind::gpu, 0, ValueType::f64, true}, few_rows, 0, nnz);
  };
  EXPECT_EQ(gathering(75000000),
            formats::gpu_tile_bits(kernels::Chip{}, few_rows, 0, 75000000, ValueType::f64, ValueType::f64));
  EXPECT_EQ(gathering(75010000),
            formats::gpu_tile_bits(kernels::Chip{}, few_rows, 0, 75010000, ValueType::f32, ValueType::f64));
  EXPECT_NE(gathering(75000000), gathering(75010000));
  EXPECT_EQ(bits({Kind::rows, 160}, 0), (std::vector<int>{7, 6, 6}));
  EXPECT_EQ(bits({Kind::rows, 2024}, 0), (std::vector<int>{7, 10, 10}));
  EXPECT_EQ(bits({Kind::rows, 2023}, 0), (std::vector<int>{7, 9, 10}));
  // 8 and 8 rows make 128 * 125 tiles of 100 places; 2^20 places are always allowed, and two an entry.
  EXPECT_EQ(bits({Kind::rows, 31}, 0), (std::vector<int>{7, 3, 4}));
  EXPECT_THROW(bits({Kind::rows, 16}, 128 * 125 * 50 - 1), Error);
  EXPECT_EQ(bits({Kind::rows, 16}, 128 * 125 * 50), (std::vector<int>{7, 3, 3}));
  // Nothing to cut is not too many, however many rows.
  EXPECT_EQ(formats::tile_bits({Kind::rows, 1}, std::vector<i64>{i64{1} << 40, 1, 1}, 0, 5),
            (std::vector<int>{40, 0, 0}));
}

TEST(FormatsLayout, TilesForAGpu) {
  // One mode of nell2's shape is cut to what fits shared memory, and segments of rows stay long; two would make them
  // short.
  const std::vector<i64> nell2{12092, 9184, 28818};
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, nell2, 0, 76900000, ValueType::f64, ValueType::f64),
            (std::vector<int>{14, 9, 15}));
  // Nothing to gain: hardly an entry for each row of a tile; all rows fit anyway; no entries.
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, nell2, 0, 10000, ValueType::f64, ValueType::f64),
            (std::vector<int>{14, 14, 15}));
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, std::vector<i64>{1000000, 300, 400}, 0, 50000000, ValueType::f64,
                                   ValueType::f64),
            (std::vector<int>{20, 9, 9}));
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, nell2, 1, 0, ValueType::f64, ValueType::f64),
            (std::vector<int>{14, 14, 15}));
  // Of rows half as long twice as many fit; where they are widened, which costs as much wherever they come from, tiles
  // pay less often.
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, nell2, 0, 76900000, ValueType::f32, ValueType::f32),
            (std::vector<int>{14, 10, 15}));
  const std::vector<i64> cube{20000, 20000, 20000};
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, cube, 0, 40000000, ValueType::f32, ValueType::f32),
            (std::vector<int>{15, 10, 15}));
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, cube, 0, 40000000, ValueType::f32, ValueType::f64),
            formats::bits_of(cube));
  // A multiprocessor with 99 KiB of shared memory has 64 for rows.
  kernels::Chip small;
  small.shared_bytes = i64{99} << 10;
  EXPECT_EQ(formats::gpu_tile_bits(small, nell2, 0, 76900000, ValueType::f64, ValueType::f64),
            (std::vector<int>{14, 8, 15}));
  // Two modes could be cut to what fits, into 32 or 392 tiles: more than that gains (measured: 1.4 and 1.2 times
  // as slow).
  const std::vector<i64> lopsided{100000, 2000, 2000};
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, lopsided, 0, 40000000, ValueType::f64, ValueType::f64),
            (std::vector<int>{17, 9, 11}));
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, lopsided, 1, 40000000, ValueType::f32, ValueType::f32),
            (std::vector<int>{17, 11, 10}));
  // All 1443 rows would fit, had rows of the longer modes not to come from memory.
  EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, std::vector<i64>{532924, 17262471, 2480308, 1443}, 0, 140000000,
                                   ValueType::f32, ValueType::f32),
            (std::vector<int>{20, 25, 22, 10}));
  for (const i64 nnz : {i64{1} << 20, i64{1} << 30}) // 16 modes are not too many
    EXPECT_EQ(formats::gpu_tile_bits(kernels::Chip{}, std::vector<i64>(16, 64), 3, nnz, ValueType::f64, ValueType::f64)
                  .size(),
              16U);
}

TEST(formats_layout, sorted_keys_are_as_wide_as_the_other_modes_need) {
  // 20 + 50 + 40 bits: without mode 1 64 would do for the 60 that remain, without mode 0 they do not.
  Entries e{{i64{1} << 20, i64{1} << 50, i64{1} << 40}, 0, {}, {}, {}};
  e.add({1, 2, 3}, 1);
  const auto packed = packed_of(e.view());
  EXPECT_EQ(sorted_of(packed, 0).key_bytes, 16);
  EXPECT_EQ(sorted_of(packed, 1).key_bytes, 8);
}

TEST(formats_layout, fibers_make_neighbours_of_entries_that_differ_in_one_mode_only) {
  for (const auto &dims : {std::vector<i64>{3, 4, 5}, std::vector<i64>{i64{1} << 62, 4, i64{1} << 61, i64{1} << 60}}) {
    Entries e{dims, 0, {}, {}, {}};
    const std::vector<i64> more(dims.size() - 3, 1);
    for (const i64 i : {0, 2, 1})
      for (i64 j = 0; j < 4; ++j) {
        std::vector<i64> at = {i, j, (i + j) % 2};
        at.insert(at.end(), more.begin(), more.end());
        e.add(at, 1);
      }
    const auto c = formats::build_canonical(e.view(), true, 1);
    const auto fibers = formats::build_fibers(c.coo.view(), 1, 1);
    // (0, ., 0), (0, ., 1), (1, ., 0), ...: six fibers of two entries each.
    i64 changes = 0;
    for (i64 k = 1; k < 12; ++k)
      changes += fibers.columns[0][k] != fibers.columns[0][k - 1] || fibers.columns[2][k] != fibers.columns[2][k - 1];
    EXPECT_EQ(changes, 5);
  }
}

TEST(formats_layout, duplicates_are_summed_in_f64_and_rounded_once) {
  // In f32 2^24 + 1 is 2^24, and again; in f64 the sum is 2^24 + 2, which f32 holds.
  test::CallerEntries<std::int32_t, float> e{{2, 2}, 1, {}, {}, {}};
  e.add({1, 1}, 0x1p24F);
  e.add({1, 1}, 1);
  e.add({0, 1}, 0);
  e.add({1, 1}, 1);
  const auto p = packed_of(e.view());
  EXPECT_EQ(p.duplicates, 2);
  ASSERT_EQ(p.nnz(), 2);
  EXPECT_EQ(p.values.as<float>()[0], 0.0F); // an explicit zero stays
  EXPECT_EQ(p.values.as<float>()[1], 0x1p24F + 2);
}

TEST(formats_layout, dense_has_the_first_index_fastest_whatever_the_strides) {
  std::vector<float> a(6);
  std::iota(a.begin(), a.end(), 0.0F);
  const std::vector<i64> dims = {2, 3};
  const auto built = [&](std::vector<i64> strides, const float *first) {
    const auto x = formats::build_dense({dims, strides, ValueType::f32, first}, 2);
    return list(x.values.as<float>(), x.values.size());
  };
  EXPECT_EQ(built({}, a.data()), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(built({3, 1}, a.data()), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(built({1, -2}, a.data() + 4), (std::vector<float>{4, 5, 2, 3, 0, 1}));
  EXPECT_EQ(built({0, 1}, a.data()), (std::vector<float>{0, 0, 1, 1, 2, 2}));
}

TEST(formats_layout, the_stride_of_a_dim_of_one_does_not_matter) {
  const std::vector<double> a = {1, 2, 3, 4};
  const i64 any = std::numeric_limits<i64>::max();
  const std::vector<i64> dims = {2, 1, 2, 1};
  const std::vector<i64> strides = {1, any, 2, -any};
  const auto x = formats::build_dense({dims, strides, ValueType::f64, a.data()}, 1);
  EXPECT_EQ(values_of(x.values), a);
}

TEST(formats_layout, dense_copies_the_same_on_any_number_of_threads) {
  const std::vector<i64> dims = {3, 50, 7, 90}; // more elements than one part takes
  std::vector<double> a(static_cast<std::size_t>(3 * 50 * 7 * 90));
  std::iota(a.begin(), a.end(), 0.0);
  const std::vector<i64> last_fastest = {50 * 7 * 90, 7 * 90, 90, 1};
  for (const int threads : {1, 2, 3}) {
    const auto x = formats::build_dense({dims, last_fastest, ValueType::f64, a.data()}, threads);
    const double *v = x.values.as<double>();
    for (i64 l = 0; l < 90; ++l)
      for (i64 j = 0; j < 50; ++j) // element (2, j, 5, l)
        ASSERT_EQ(v[2 + 3 * (j + 50 * (5 + 7 * l))], static_cast<double>(l + 90 * (5 + 7 * (j + 50 * 2))));
  }
}

} // namespace
} // namespace td
