// How MTTKRP of sorted copies is laid out on an H200: 132 multiprocessors, 232448 bytes of shared memory a block, 60
// MiB of second-level cache. No GPU is needed.
#include "kernels/cuda/sorted_layout.hpp"

#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "core/checked.hpp"

namespace td::test {
namespace {

using kernels::cuda::SortedLayout;

/// A copy and a call of which only sizes count.
class Call {
public:
  Call(std::vector<i64> dims, i64 nnz, i64 rank, std::vector<int> bits = {}) : dims_(std::move(dims)) {
    x.dims = dims_;
    x.nnz = nnz;
    x.layout.order = static_cast<int>(dims_.size());
    for (std::size_t m = 1; m < dims_.size(); ++m) {
      x.layout.bits[m] = static_cast<std::uint8_t>(bits.empty() ? index_bits(dims_[m]) : bits[m]);
      x.tiles *= ((dims_[m] - 1) >> x.layout.bits[m]) + 1;
    }
    for (const i64 dim : dims_)
      factors.emplace_back(nullptr, ValueType::f64, dim, rank, rank);
    args.out = {nullptr, ValueType::f64, dims_.front(), rank, rank};
    args.entries = {0, nnz};
  }
  SortedLayout layout(const kernels::Chip &chip = {}) {
    args.factors = factors;
    return {x, args, chip};
  }
  void set_rows(ValueType type, i64 ld) {
    for (ConstMatrix &a : factors) {
      a.type = type;
      a.ld = ld;
    }
  }

  kernels::SortedView x;
  kernels::MttkrpArgs args;
  std::vector<ConstMatrix> factors;

private:
  std::vector<i64> dims_;
};

std::vector<i64> staged(const SortedLayout::Pass &pass) {
  std::vector<i64> rows;
  for (const SortedLayout::Mode &mode : pass.modes)
    rows.push_back(mode.staged);
  return rows;
}

// nell2 with its tiles of 512 rows of mode 1: these are staged, the longer mode comes first and is not.
TEST(KernelsCudaSortedLayout, StagesTheRowsOfATile) {
  Call call({12092, 9184, 28818}, 76869512, 32, {0, 9, 15});
  const SortedLayout layout = call.layout();
  EXPECT_EQ(layout.factors, 2);
  EXPECT_EQ(layout.threads, 512);
  EXPECT_EQ(layout.blocks, 132);
  EXPECT_EQ(layout.size, 2); // 16 bytes
  EXPECT_EQ(layout.lanes, 16);
  EXPECT_EQ(layout.columns, 32);
  EXPECT_EQ(layout.passes(), 1);
  EXPECT_EQ(layout.fills, 132 + 18 - 1);
  const SortedLayout::Pass pass = layout.pass(0);
  EXPECT_EQ(pass.cols, 32);
  EXPECT_EQ(pass.pitch, 256);
  ASSERT_EQ(pass.modes.size(), 2U);
  EXPECT_EQ(pass.modes[0].mode, 2);
  EXPECT_EQ(pass.modes[0].rows, 28818);
  EXPECT_EQ(pass.modes[0].staged, 0);
  EXPECT_EQ(pass.modes[1].mode, 1);
  EXPECT_EQ(pass.modes[1].staged, 512);
  EXPECT_EQ(pass.modes[1].at, 2 * 32 * 32 * 8); // behind two sums of each of 32 groups
  EXPECT_EQ(pass.shared, 16384 + 512 * 256);
}

// 232448 bytes, less 16384 for sums, 256 for their rows and 1024: 839 rows of 256 bytes.
TEST(KernelsCudaSortedLayout, StagesWhatFits) {
  EXPECT_EQ(staged(Call({1000, 839, 240000}, 10000000, 32).layout().pass(0)), (std::vector<i64>{0, 839}));
  EXPECT_EQ(staged(Call({1000, 840, 240000}, 10000000, 32).layout().pass(0)), (std::vector<i64>{0, 0}));
  EXPECT_EQ(staged(Call({1000, 439, 400}, 10000000, 32).layout().pass(0)), (std::vector<i64>{439, 400}));
  EXPECT_EQ(staged(Call({1000, 440, 400}, 10000000, 32).layout().pass(0)), (std::vector<i64>{0, 400}));
  kernels::Chip small;
  small.shared_bytes = i64{99} << 10;
  EXPECT_EQ(staged(Call({1000, 439, 400}, 10000000, 32).layout(small).pass(0)), (std::vector<i64>{0, 0}));
  EXPECT_EQ(staged(Call({1000, 439, 300}, 10000000, 32).layout(small).pass(0)), (std::vector<i64>{0, 300}));
}

// Rows are staged by each of 132 blocks, and read at least twice as often: 800 rows from 211200 entries on.
TEST(KernelsCudaSortedLayout, StagesWhatIsReadMoreOftenThanFilled) {
  EXPECT_EQ(staged(Call({1000, 800, 240000}, 2 * 132 * 800, 32).layout().pass(0)), (std::vector<i64>{0, 800}));
  EXPECT_EQ(staged(Call({1000, 800, 240000}, 2 * 132 * 800 - 1, 32).layout().pass(0)), (std::vector<i64>{0, 0}));
  // Half of the entries meet half of the tiles and one.
  Call half({1000, 1024, 512}, 40000000, 32, {0, 9, 8});
  half.args.entries = {0, 20000000};
  EXPECT_EQ(half.layout().fills, 132 + 3 - 1);
}

// 245760 rows of 256 bytes fill the second-level cache. More of them leave 64 KiB to the first-level cache: 583 rows
// fit.
TEST(KernelsCudaSortedLayout, LeavesRoomWhereRowsComeFromMemory) {
  EXPECT_EQ(staged(Call({1000, 584, 245760}, 10000000, 32).layout().pass(0)), (std::vector<i64>{0, 584}));
  EXPECT_EQ(staged(Call({1000, 584, 245761}, 10000000, 32).layout().pass(0)), (std::vector<i64>{0, 0}));
  EXPECT_EQ(staged(Call({1000, 583, 245761}, 10000000, 32).layout().pass(0)), (std::vector<i64>{0, 583}));
}

TEST(KernelsCudaSortedLayout, TakesFewEntriesWithFewBlocks) {
  EXPECT_EQ(Call({10, 10, 10}, 0, 16).layout().blocks, 1);
  EXPECT_EQ(Call({10, 10, 10}, 5 * 1024, 16).layout().blocks, 5);
  EXPECT_EQ(Call({10, 10, 10}, 1000 * 1024, 16).layout().blocks, 132);
}

// Where a tile's rows do not fit at the widest pass, passes are made narrower until they do.
TEST(KernelsCudaSortedLayout, CutsColumnsIntoPasses) {
  const SortedLayout whole = Call({1000, 5000, 5000}, 10000000, 129).layout();
  EXPECT_EQ(whole.size, 1); // an odd number of f64 columns is not aligned
  EXPECT_EQ(whole.factors, 0);
  EXPECT_EQ(whole.lanes, 32);
  EXPECT_EQ(whole.columns, 26); // five passes of at most 32
  EXPECT_EQ(whole.passes(), 5);
  EXPECT_EQ(whole.pass(104).cols, 25);
  const SortedLayout even = Call({1000, 5000, 5000}, 10000000, 130).layout();
  EXPECT_EQ(even.size, 2);
  EXPECT_EQ(even.columns, 44);
  EXPECT_EQ(even.lanes, 32);
  EXPECT_EQ(even.passes(), 3);
  EXPECT_EQ(even.pass(88).cols, 42);
  const SortedLayout tiled = Call({1000, 5000, 5000}, 10000000, 64, {0, 9, 13}).layout();
  EXPECT_EQ(tiled.columns, 32); // 512 rows of 64 columns do not fit beside 16 groups' sums, of 52 they do
  EXPECT_EQ(tiled.passes(), 2);
  EXPECT_EQ(staged(tiled.pass(32)), (std::vector<i64>{0, 512}));
}

// Rows in f32 whose terms are f64: 384 threads where 512 spill registers, at most 16 lanes.
TEST(KernelsCudaSortedLayout, WidenedRowsHaveKernelsOfTheirOwn) {
  Call call({1000, 5000, 5000}, 10000000, 65);
  call.set_rows(ValueType::f32, 68);
  SortedLayout layout = call.layout();
  EXPECT_EQ(layout.size, 4); // of rows alone: the result is written number by number
  EXPECT_EQ(layout.factors, 2);
  EXPECT_EQ(layout.threads, 384);
  EXPECT_EQ(layout.lanes, 16);
  EXPECT_EQ(layout.columns, 36);
  EXPECT_EQ(layout.passes(), 2);
  call.x.key_bytes = 4;
  EXPECT_EQ(call.layout().threads, 512);
  call.x.key_bytes = 16;
  EXPECT_EQ(call.layout().threads, 384);
  EXPECT_EQ(call.layout().factors, 0);
  call.set_rows(ValueType::f32, 65);
  EXPECT_EQ(call.layout().size, 1);
}

// It is a bound of the kernel's on a GPU, which calls in other threads read between setting it and their launches.
TEST(KernelsCudaSortedLayout, MostSharedMemoryIsOneNumberForAKernel) {
  std::map<std::pair<int, int>, i64> most; // by threads and lanes, which each kernel has its own of
  for (const i64 dim : {10, 800, 5000, 300000})
    for (const i64 nnz : {100, 10000000})
      for (const i64 rank : {3, 16, 33, 64, 200})
        for (const auto &[type, key_bytes] :
             {std::pair(ValueType::f64, 4), {ValueType::f32, 8}, {ValueType::f32, 16}}) {
          Call call({1000, dim, 240000}, nnz, rank, {0, 9, 17});
          call.set_rows(type, rank);
          call.x.key_bytes = key_bytes;
          const SortedLayout layout = call.layout();
          EXPECT_EQ(most.try_emplace({layout.threads, layout.lanes}, layout.most_shared).first->second,
                    layout.most_shared);
          for (i64 first = 0; first < rank; first += layout.columns)
            EXPECT_LE(layout.pass(first).shared, layout.most_shared);
        }
  EXPECT_EQ((most.at({512, 16})), 232448 - 2 * 32 * 4 - 1024);
}

TEST(KernelsCudaSortedLayout, SizesThatNothingHasAreNoTrouble) {
  Call call({1000, 5000, 5000}, i64{1} << 62, i64{1} << 62, {0, 5, 5});
  call.x.tiles = std::numeric_limits<i64>::max();
  const SortedLayout layout = call.layout();
  EXPECT_GT(layout.passes(), i64{1} << 50);
  EXPECT_GT(layout.fills, 0);
}

} // namespace
} // namespace td::test
