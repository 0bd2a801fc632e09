// What is selected of a form for one worker: its entries and no others, with lists that say of them what the form's
// say.
#include "tensor/selection.hpp"

#include "kernels/reference/entries.hpp"
#include "tensor/part.hpp"
#include "unit/kernels_support.hpp"
#include "unit/small_device.hpp"

namespace td::test {
namespace {

using kernels::SortedView;
using kernels::TensorView;
using tensor::PartitionKind;

constexpr i64 much = i64{1} << 30;

using Entry = std::vector<double>; // coordinates and value

std::vector<Entry> entries_of_view(const TensorView &x, Range range) {
  std::vector<Entry> all;
  kernels::reference::for_each_entry(x, range, [&](std::span<const i64> c, double value) {
    Entry &entry = all.emplace_back(c.begin(), c.end());
    entry.push_back(value);
  });
  return all;
}

/// Whether what is said of a sorted view's lists holds.
void expect_in_order(const SortedView &x) {
  EXPECT_EQ(x.row_begin[0], 0);
  EXPECT_EQ(x.row_begin[x.rows], x.nnz);
  EXPECT_EQ(x.tile_begin[0], 0);
  EXPECT_EQ(x.tile_begin[x.tiles], x.rows);
  for (i64 row = 0; row < x.rows; ++row)
    EXPECT_LT(x.row_begin[row], x.row_begin[row + 1]);
  for (i64 tile = 0; tile < x.tiles; ++tile) {
    const i64 light = x.tiles > 1 ? x.tile_light[tile] : x.tile_begin[tile];
    EXPECT_LE(x.tile_begin[tile], light);
    EXPECT_LE(light, x.tile_begin[tile + 1]);
    for (i64 row = x.tile_begin[tile] + 1; row < x.tile_begin[tile + 1]; ++row)
      EXPECT_TRUE(row == light || x.row_index[row - 1] < x.row_index[row]);
    for (i64 row = x.tile_begin[tile]; row < x.tile_begin[tile + 1] && x.tiles > 1; ++row)
      EXPECT_EQ(std::binary_search(x.heavy_rows.begin(), x.heavy_rows.end(), x.row_index[row]), row < light);
  }
}

class SelectedRows : public testing::TestWithParam<PartitionKind> {};

// The parts of all workers have each entry once; a part has its entries in the stored order, and only those of rows
// that its worker sums.
TEST_P(SelectedRows, HasTheEntriesOfItsRows) {
  const Stored<double> x(heavy_entries(), false);
  for (const auto *copies : {&x.sorted, &x.tiled})
    for (const formats::Sorted &copy : *copies)
      for (const int workers : {2, 3, 4, 7, 60}) { // 60: more than rows of mode 0
        const SortedView view = copy.view();
        SCOPED_TRACE(testing::Message() << view.tiles << " tiles, mode " << view.mode << ", " << workers << " workers");
        const tensor::Sharded sharded = tensor::shard_copy(view, workers, GetParam());
        const std::vector<Entry> all = entries_of_view(view, {0, view.nnz});
        std::vector<int> times(all.size(), 0);
        for (int worker = 0; worker < workers; ++worker) {
          const tensor::Load &load = sharded.loads[static_cast<std::size_t>(worker)];
          const tensor::StoredForm part(view, tensor::select_load(view, load));
          SmallDevice device(much);
          tensor::Resident resident;
          const tensor::Placement placement = resident.on(device, {0, {workers, worker, false}}, part);
          const tensor::FormView there = placement.whole("a test");
          const auto own = std::get<SortedView>(there.view());
          EXPECT_EQ(own.nnz, sharded.partition.load[static_cast<std::size_t>(worker)]);
          EXPECT_EQ(device.kept(), tensor::bytes_of(own).entries + tensor::bytes_of(own).lists);
          expect_in_order(own);
          std::size_t at = 0;
          for (const Entry &entry : entries_of_view(own, {0, own.nnz})) {
            while (at < all.size() && all[at] != entry)
              ++at;
            ASSERT_LT(at, all.size()) << "an entry that is not the form's, or out of order";
            ++times[at++];
          }
        }
        for (const int count : times)
          ASSERT_EQ(count, 1);
      }
}

INSTANTIATE_TEST_SUITE_P(All, SelectedRows,
                         testing::Values(PartitionKind::rows, PartitionKind::split_rows, PartitionKind::entries));

TEST(SelectedRange, HasARangeOfEntries) {
  const Stored<double> x(heavy_entries(), false);
  for (const auto &[name, host] : x.views(1)) {
    const i64 nnz = kernels::entries_of(host);
    for (const Range range : {Range{0, nnz}, Range{0, 5}, Range{nnz / 3, nnz / 2}, Range{nnz - 1, nnz}}) {
      SCOPED_TRACE(testing::Message() << name << ", from " << range.begin << " to " << range.end);
      const tensor::StoredForm part(tensor::StoredForm(host), tensor::select_range(host, range));
      SmallDevice device(much);
      tensor::Resident resident;
      const tensor::Placement placement = resident.on(device, {0, {2, 0, false}}, part);
      EXPECT_EQ(placement.entries(), range.size());
      EXPECT_EQ(placement.all_entries(), nnz);
      EXPECT_EQ(placement.first_entry(), range.begin);
      const tensor::FormView own = placement.whole("a test");
      EXPECT_EQ(entries_of_view(own.view(), {0, range.size()}), entries_of_view(host, range));
    }
  }
}

} // namespace
} // namespace td::test
