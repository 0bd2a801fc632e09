// How the fused MTTKRP of a dense tensor is cut: what the kernel counts on, and memory. No GPU is needed.
#include "kernels/cuda/dense_layout.hpp"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace td::test {
namespace {

using kernels::Chip;
using kernels::cuda::dense_layout;
using kernels::cuda::dense_rows;
using kernels::cuda::DenseLayout;
using kernels::cuda::Multiply;

constexpr Chip small{4, i64{227} << 10, i64{60} << 20};
constexpr std::pair<ValueType, Multiply> arithmetics[] = {
    {ValueType::f64, Multiply::f64}, {ValueType::f32, Multiply::f64}, {ValueType::f32, Multiply::tf32_pairs}};

i64 product(std::span<const i64> dims) {
  i64 n = 1;
  for (const i64 d : dims)
    n *= d;
  return n;
}

/// Rows of the result that the block meets which meets the most, of the depth's part that begins at `begin`.
i64 most_rows_met(const DenseLayout &l, i64 begin) {
  const i64 depth = std::min(l.depth_part, l.depth - begin);
  const i64 chunks = (depth + l.chunk() - 1) / l.chunk();
  const i64 units = l.row_tiles() * chunks;
  const i64 blocks = std::min(l.blocks, units);
  i64 most = 0;
  for (i64 b = 0; b < blocks; ++b) {
    const Range mine = part_of({0, units}, b, blocks);
    std::set<i64> met;
    const i64 first = mine.begin / chunks * dense_rows;
    const i64 end = std::min(l.rows(), ((mine.end - 1) / chunks + 1) * dense_rows);
    const i64 round = std::min(end - first, l.inner * l.count); // after which rows come again
    for (i64 row = first; row < first + round; ++row)
      met.insert(row / l.inner % l.count);
    most = std::max(most, static_cast<i64>(met.size()));
  }
  return most;
}

TEST(KernelsCudaDenseLayout, CoversTheTensorAndHasRoomForEachBlocksRows) {
  constexpr u64 seed = 20261123;
  std::mt19937_64 random(seed);
  const auto up_to = [&](i64 n) { return 1 + static_cast<i64>(random() % static_cast<u64>(n)); };
  for (int k = 0; k < 300; ++k) {
    std::vector<i64> dims;
    const auto order = static_cast<int>(1 + up_to(5));
    for (int m = 0; m < order; ++m)
      dims.push_back(up_to(k % 3 == 0 ? 6 : order > 4 ? 12 : 70));
    const auto mode = static_cast<int>(random() % dims.size());
    const i64 dim = dims[static_cast<std::size_t>(mode)];
    const i64 rows = up_to(dim);
    const i64 rank = up_to(k % 2 == 0 ? 40 : 300);
    const ValueType type = k % 5 == 0 ? ValueType::f32 : ValueType::f64;
    const Multiply multiply = k % 10 == 0 ? Multiply::tf32_pairs : Multiply::f64; // of f32
    const DenseLayout l = dense_layout(dims, mode, rows, rank, type, multiply, small);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", case " << k << ", order " << order << ", mode " << mode);
    EXPECT_EQ(l.rows() * l.depth, product(dims) / dim * rows);
    EXPECT_TRUE(l.of_rows(mode));
    EXPECT_EQ(l.leading, l.of_rows(0));
    EXPECT_EQ(l.apart(), l.begin > 0 && l.end < order);
    EXPECT_EQ(l.count, rows);
    EXPECT_GE(l.columns * l.column_tiles, rank);
    EXPECT_LT(l.columns * (l.column_tiles - 1), rank);
    EXPECT_GE(l.blocks, 1);
    EXPECT_LE(l.blocks, l.row_tiles() * l.chunks());
    for (i64 begin = 0; begin < l.depth; begin += l.depth_part)
      EXPECT_LE(most_rows_met(l, begin), l.slots);
    // A factor serves as the Khatri-Rao product of one mode, if it is f64 or long (none of these is).
    int depth_modes = 0;
    for (int m = 0; m < order; ++m)
      depth_modes += l.of_rows(m) ? 0 : 1;
    EXPECT_EQ(l.depth_modes, depth_modes);
    EXPECT_EQ(l.scales(rank) > 0, multiply == Multiply::tf32_pairs);
    EXPECT_EQ(l.products(rank) == 0, depth_modes == 1 && type == ValueType::f64);
    EXPECT_TRUE(l.depth_part == l.depth || l.depth_part % l.chunk() == 0);
  }
}

// An f32 factor of the depth that is longer than the second-level cache holds it in f64 has no copy in f64, and its
// product no parts; not for TensorFloat-32, nor where many row tiles would widen it again.
TEST(KernelsCudaDenseLayout, LongFactorsServeAsTheyAre) {
  const auto of = [](const std::vector<i64> &dims, int mode, i64 rank, Multiply multiply) {
    return dense_layout(dims, mode, dims[static_cast<std::size_t>(mode)], rank, ValueType::f32, multiply, Chip());
  };
  for (const auto &[dims, mode, rank] : {std::tuple(std::vector<i64>{967212, 501}, 1, i64{32}),
                                         {{401, 1208412}, 0, 10},
                                         {{3, 5, 7, 2, 300000}, 2, 32},
                                         {{37, 90000}, 0, 64}}) {
    const DenseLayout l = of(dims, mode, rank, Multiply::f64);
    EXPECT_EQ(l.depth_modes, 1);
    EXPECT_FALSE(l.makes_products);
    EXPECT_EQ(l.products(rank), 0);
    EXPECT_EQ(l.depth_part, l.depth);
    EXPECT_GT(of(dims, mode, rank, Multiply::tf32_pairs).products(rank), 0);
  }
  EXPECT_TRUE(of({967212, 501}, 0, 32, Multiply::f64).makes_products);
  const DenseLayout many = of({967212, 5010}, 1, 32, Multiply::f64);
  EXPECT_TRUE(many.makes_products);
  EXPECT_LT(many.depth_part, many.depth);
}

// For compute capability 8.0, 8.6 and 9.0 this is what a block can have, and whether a wide tile fits it.
TEST(KernelsCudaDenseLayout, FitsSharedMemory) {
  const std::vector<i64> dims{60, 50, 40};
  for (const i64 kilobytes : {99, 163, 227}) {
    const Chip chip{80, kilobytes << 10, i64{6} << 20};
    for (const auto &[type, multiply] : arithmetics)
      for (const i64 rank : {1, 33, 100, 500})
        for (int mode = 0; mode < 3; ++mode) {
          const DenseLayout l =
              dense_layout(dims, mode, dims[static_cast<std::size_t>(mode)], rank, type, multiply, chip);
          EXPECT_LE(kernels::cuda::dense_shared_bytes(l), chip.shared_bytes)
              << kilobytes << " KB, rank " << rank << ", mode " << mode;
          EXPECT_GE(l.columns * l.column_tiles, rank);
        }
  }
  EXPECT_GT(dense_layout(dims, 0, 60, 500, ValueType::f64, Multiply::f64, Chip()).columns, 64);
}

// Not where multiplying warps widen the products, nor where f64 has few chunks; several only where they are fewer by
// enough.
TEST(KernelsCudaDenseLayout, ATileTakesARankOfUpTo120) {
  const auto columns = [](const std::vector<i64> &dims, i64 rank, ValueType type, Multiply multiply, i64 kilobytes) {
    const Chip h200;
    const Chip chip{h200.multiprocessors, kilobytes << 10, i64{50} << 20};
    const DenseLayout l = dense_layout(dims, 0, dims.front(), rank, type, multiply, chip);
    return std::pair(l.columns, l.column_tiles);
  };
  using Columns = std::pair<i64, i64>;
  const std::vector<i64> dims{300, 250, 200};
  for (const ValueType type : {ValueType::f32, ValueType::f64}) {
    const auto of = [&](i64 rank) { return columns(dims, rank, type, Multiply::f64, 227); };
    EXPECT_EQ(of(96), Columns(96, 1));
    EXPECT_EQ(of(97), Columns(104, 1));
    EXPECT_EQ(of(120), Columns(120, 1));
    EXPECT_EQ(of(121), Columns(64, 2));
    EXPECT_EQ(of(200), Columns(104, 2)) << "not three of 72";
    EXPECT_EQ(of(500), Columns(88, 6)) << "not five of 104";
  }
  EXPECT_EQ(columns(dims, 120, ValueType::f32, Multiply::tf32_pairs, 227), Columns(64, 2));
  EXPECT_EQ(columns({60, 50, 40}, 120, ValueType::f32, Multiply::f64, 227), Columns(120, 1));
  EXPECT_EQ(columns({60, 50, 40}, 120, ValueType::f32, Multiply::f64, 99), Columns(32, 4)) << "what fits";
  EXPECT_EQ(columns({60, 50, 40}, 120, ValueType::f64, Multiply::f64, 227), Columns(64, 2)) << "few chunks";
  EXPECT_EQ(columns({37, 90000}, 120, ValueType::f32, Multiply::f64, 227), Columns(64, 2)) << "widened by warps";
}

// Plans are made of these too.
TEST(KernelsCudaDenseLayout, SizesThatNothingHasAreNoTrouble) {
  for (const std::vector<i64> &dims :
       {std::vector<i64>{i64{1} << 20, i64{1} << 20, i64{1} << 20}, {i64{1} << 61, 2}, {3, i64{1} << 59}})
    for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode)
      for (const auto &[type, multiply] : arithmetics) {
        const i64 rank = i64{1} << 62;
        const DenseLayout l =
            dense_layout(dims, mode, dims[static_cast<std::size_t>(mode)], rank, type, multiply, Chip());
        EXPECT_GT(l.partials(), static_cast<double>(rank));
        EXPECT_GE(l.products(rank), 0);
        EXPECT_GE(l.scales(rank), 0);
        EXPECT_GT(kernels::cuda::dense_cycles(l, Chip(), 18), 1e18);
      }
}

// What the matrix-based way needs six GPUs for: the tensor's 7.9 GB, and less than 1 GB beside it.
TEST(KernelsCudaDenseLayout, TakesLittleMemoryAtHighRank) {
  const std::vector<i64> dims{129, 129, 129, 12, 39};
  for (int mode = 0; mode < 5; ++mode) {
    const DenseLayout l =
        dense_layout(dims, mode, dims[static_cast<std::size_t>(mode)], 2000, ValueType::f64, Multiply::f64, Chip());
    EXPECT_LT(8 * (l.partials() + l.products(2000)), i64{200} << 20) << "mode " << mode;
  }
}

// No mode is a narrow product where its neighbours are long enough together.
TEST(KernelsCudaDenseLayout, FillsTilesWhateverTheMode) {
  for (const std::vector<i64> &dims : {std::vector<i64>{200, 150, 12, 250}, {12, 29010, 29010}, {2, 3, 5000, 3, 2000}})
    for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode) {
      const DenseLayout l =
          dense_layout(dims, mode, dims[static_cast<std::size_t>(mode)], 32, ValueType::f64, Multiply::f64, Chip());
      EXPECT_LT(static_cast<double>(l.row_tiles() * dense_rows), 1.1 * static_cast<double>(l.rows()))
          << dims.front() << " .., mode " << mode;
      EXPECT_GT(l.depth, 200) << dims.front() << " .., mode " << mode;
    }
}

// Neighbouring tiles are worked on at the same time only if each has as many blocks, nearly all of them.
TEST(KernelsCudaDenseLayout, TilesOfAResultHaveAsManyBlocksEach) {
  const auto layout = [](i64 rows, i64 depth) {
    return dense_layout(std::vector<i64>{rows, depth}, 0, rows, 32, ValueType::f64, Multiply::f64, Chip());
  };
  const i64 all = 2 * Chip().multiprocessors;
  const DenseLayout twice = layout((all / 2 - 1) * dense_rows, 60000);
  EXPECT_TRUE(twice.direct);
  EXPECT_EQ(twice.blocks, 2 * twice.row_tiles());
  EXPECT_EQ(layout(all / 2 * dense_rows + 1, 60000).blocks, all) << "half of them would have nothing to do";
  EXPECT_EQ(layout(20 * all * dense_rows, 500).blocks, all);
  EXPECT_FALSE(layout(12, 60000).direct) << "sums of so few rows are smaller";
}

// 401 * 201 * 12 numbers of f32 are an odd multiple of 16 bytes: in rows of so many the copies of 32 bytes are shifted,
// as in rows of 401 * 201, of which the Khatri-Rao product is a twelfth as long.
TEST(KernelsCudaDenseLayout, RowsOfF32CountFrom32Bytes) {
  const std::vector<i64> dims{401, 201, 12, 501};
  for (const i64 rank : {2, 6, 8, 10, 16}) {
    const DenseLayout l = dense_layout(dims, 3, 501, rank, ValueType::f32, Multiply::f64, Chip());
    EXPECT_EQ(std::pair(l.begin, l.end), std::pair(2, 4)) << "rank " << rank;
  }
}

// Neither the combinations of a long mode with few others are rows, of which each would have a short sum, nor are these
// its depth: the long mode is one side of the matrix, what is before and behind it the other.
TEST(KernelsCudaDenseLayout, ALongModeInTheMiddleHasTheOthersAcross) {
  const Chip chip;
  for (const std::vector<i64> &dims : {std::vector<i64>{19, 700001, 17}, {8, 500000, 10}, {64, 12000, 64}})
    for (const ValueType type : {ValueType::f32, ValueType::f64})
      for (const i64 rank : {4, 16, 33, 100})
        for (int mode = 0; mode < 3; ++mode) {
          const DenseLayout l =
              dense_layout(dims, mode, dims[static_cast<std::size_t>(mode)], rank, type, Multiply::f64, chip);
          SCOPED_TRACE(testing::Message() << dims.front() << " .., mode " << mode << ", rank " << rank);
          EXPECT_TRUE(l.apart());
          EXPECT_EQ(l.of_rows(1), mode == 1);
          EXPECT_EQ(l.depth, mode == 1 ? dims[0] * dims[2] : dims[1]);
          EXPECT_EQ(l.leading_size, dims[0]);
          EXPECT_EQ(l.middle, dims[1]);
          EXPECT_EQ(l.direct, mode == 1);
        }
}

TEST(KernelsCudaDenseLayout, CellsAreDealtOut) {
  for (const i64 columns : {1, 2, 9, 10, 32, 255, 256, 257, 2000})
    for (int mode = 0; mode < 3; ++mode) {
      const kernels::cuda::CellsLayout l =
          kernels::cuda::cells_layout(std::vector<i64>{401, 201, 12}, mode, columns, 132);
      SCOPED_TRACE(testing::Message() << columns << " columns, mode " << mode);
      EXPECT_EQ(columns % l.wide, 0);
      EXPECT_GE(l.groups, 1);
      EXPECT_LE(l.threads(), 256U);
      EXPECT_GE(l.threads(), static_cast<unsigned>(l.width * l.groups));
      EXPECT_EQ(l.rows, mode == 0 ? l.groups : 1) << "rows of the first mode lie together";
      EXPECT_EQ(l.step, mode == 0 ? 1 : l.groups);
      EXPECT_GE(l.parts, 1);
    }
  // Sums over one mode leave many rows.
  const kernels::cuda::CellsLayout many = kernels::cuda::cells_layout(std::vector<i64>{129, 60372}, 1, 32, 132);
  EXPECT_EQ(many.rows, many.groups);
  EXPECT_EQ(many.step, 1);
  EXPECT_EQ(many.parts, 1);
}

} // namespace
} // namespace td::test
