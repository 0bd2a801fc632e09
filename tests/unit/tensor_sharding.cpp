// Dividing stored tensors between workers.
#include "tensor/sharding.hpp"

#include <cmath>
#include <map>

#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

using kernels::SortedView;
using tensor::Load;
using tensor::PartitionKind;
using tensor::Sharded;

constexpr int worker_counts[] = {1, 2, 3, 4, 7, 60}; // 60: more than rows

Range entries_of_slot(const SortedView &x, i64 slot) { return {x.row_begin[slot], x.row_begin[slot + 1]}; }

/// How often each stored entry is summed, by all workers together.
std::vector<int> times_summed(const SortedView &x, const Sharded &sharded) {
  std::vector<int> times(static_cast<std::size_t>(x.nnz), 0);
  const auto sum = [&](i64 row, Range among) {
    for (i64 slot = 0; slot < x.rows; ++slot) {
      if (x.row_index[slot] != row)
        continue;
      const Range all = entries_of_slot(x, slot);
      for (i64 k = std::max(all.begin, among.begin); k < std::min(all.end, among.end); ++k)
        ++times[static_cast<std::size_t>(k)];
    }
  };
  for (const Load &load : sharded.loads) {
    for (const Range &rows : load.whole)
      for (i64 row = rows.begin; row < rows.end; ++row)
        sum(row, {0, x.nnz});
    for (const Load::RowSegment &row : load.split)
      sum(row.row, row.entries);
  }
  return times;
}

class ShardCopy : public testing::TestWithParam<PartitionKind> {};

TEST_P(ShardCopy, EveryEntryIsSummedOnce) {
  const Stored<double> x(heavy_entries(), false);
  for (const auto *copies : {&x.sorted, &x.tiled})
    for (const formats::Sorted &copy : *copies)
      for (const int workers : worker_counts) {
        const SortedView view = copy.view();
        SCOPED_TRACE(testing::Message() << view.tiles << " tiles, mode " << view.mode << ", " << workers << " workers");
        const Sharded sharded = tensor::shard_copy(view, workers, GetParam());
        for (const int times : times_summed(view, sharded))
          ASSERT_EQ(times, 1);
        i64 load = 0;
        for (const i64 entries : sharded.partition.load)
          load += entries;
        EXPECT_EQ(load, view.nnz);
      }
}

TEST_P(ShardCopy, EveryRowHasOneOwner) {
  const Stored<double> x(heavy_entries(), false);
  for (const formats::Sorted &copy : x.tiled)
    for (const int workers : worker_counts) {
      const Sharded sharded = tensor::shard_copy(copy.view(), workers, GetParam());
      std::vector<int> owners(static_cast<std::size_t>(x.dims[static_cast<std::size_t>(copy.view().mode)]), 0);
      for (const Ranges &ranges : sharded.partition.owned)
        for (const Range &rows : ranges)
          for (i64 row = rows.begin; row < rows.end; ++row)
            ++owners[static_cast<std::size_t>(row)];
      for (const int count : owners)
        EXPECT_EQ(count, 1);
    }
}

INSTANTIATE_TEST_SUITE_P(All, ShardCopy,
                         testing::Values(PartitionKind::rows, PartitionKind::split_rows, PartitionKind::entries));

TEST(ShardCopy, AHeavyRowIsSharedOut) {
  const Stored<double> x(heavy_entries(), false);
  const SortedView view = x.sorted[0].view();
  for (const int workers : {2, 3, 4, 7}) {
    SCOPED_TRACE(workers);
    const Sharded split = tensor::shard_copy(view, workers, PartitionKind::split_rows);
    EXPECT_LE(split.partition.imbalance(), plan::most_imbalance);
    ASSERT_EQ(split.partition.split.size(), 1U);
    EXPECT_EQ(split.partition.split.front().row, 17);
    // AMPED's rule leaves the row to one worker, who then has more than half of all.
    const double whole = tensor::shard_copy(view, workers, PartitionKind::rows).partition.imbalance();
    EXPECT_GT(whole, 0.55 * workers - 1);
    EXPECT_EQ(split.partition.imbalance_unsplit(), whole);
  }
}

tensor::Sharding sharding_of(const char *format, const char *sharding, int workers, bool deterministic) {
  Options options;
  options.set_text("format", format);
  options.set_text("groups", "none");
  options.set_text("sharding", sharding);
  const auto x = tensor::Tensor::make_sparse(heavy_entries().view(), options, 1, "");
  return {*x, workers, deterministic};
}

TEST(Sharding, FollowsTheOptionAndTheFormat) {
  EXPECT_EQ(sharding_of("sorted", "auto", 3, false).rows(0).split.size(), 1U);
  EXPECT_TRUE(sharding_of("sorted", "rows", 3, false).rows(0).split.empty());
  EXPECT_EQ(sharding_of("sorted", "entries", 3, false).rows(2).split.size(), 2U); // at both borders
  EXPECT_TRUE(sharding_of("sorted", "entries", 3, true).rows(2).split.empty());
  for (const char *format : {"coo", "blco"}) {
    EXPECT_TRUE(sharding_of(format, "auto", 3, false).by_entries());
    EXPECT_TRUE(sharding_of(format, "entries", 3, false).by_entries());
    EXPECT_FALSE(sharding_of(format, "auto", 1, false).by_entries());
    EXPECT_FALSE(sharding_of(format, "auto", 3, true).by_entries());
    const auto rows = sharding_of(format, "rows", 3, false);
    EXPECT_FALSE(rows.by_entries());
    EXPECT_EQ(rows.rows(0).load[0], rows.rows(0).load[2]); // each looks at all of them
    EXPECT_GT(rows.rows(0).load[0], 3000);
  }
}

TEST(Sharding, CellsOfAGroupFollowOneAnother) {
  Options options;
  options.set_text("format", "sorted");
  options.set_text("groups", "0,1|2");
  auto entries = heavy_entries();
  const auto x = tensor::Tensor::make_sparse(entries.view(), options, 1, "");
  for (const int workers : {2, 3, 7}) {
    const tensor::Sharding sharding(*x, workers, false);
    EXPECT_LE(sharding.cells(0).imbalance(), plan::most_imbalance);
    for (int worker = 0; worker < workers; ++worker) {
      EXPECT_LE(sharding.cell_load(0, worker).whole.size(), 1U);
      EXPECT_EQ(sharding.cell_load(0, worker).split.size(), sharding.cells(0).split.size());
    }
    EXPECT_TRUE(tensor::Sharding(*x, workers, true).cells(0).split.empty());
  }
}

} // namespace
} // namespace td::test
