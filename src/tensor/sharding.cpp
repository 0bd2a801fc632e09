#include "tensor/sharding.hpp"

#include <algorithm>

namespace td::tensor {

namespace {

/// Rows of a sorted copy that have entries, and how many.
class StoredRows {
public:
  explicit StoredRows(const kernels::SortedView &x) : x_(x) {
    if (x.tiles == 1)
      return;
    const i64 dim = x.dims[static_cast<std::size_t>(x.mode)];
    auto entries = Buffer<i64>::zeros(dim, "entries of rows");
    for (i64 slot = 0; slot < x.rows; ++slot)
      entries[x.row_index[slot]] += x.row_begin[slot + 1] - x.row_begin[slot];
    begin_.push_back(0);
    for (i64 row = 0; row < dim; ++row) {
      if (entries[row] == 0)
        continue;
      index_.push_back(row);
      begin_.push_back(begin_.back() + entries[row]);
    }
  }

  plan::ListedRows counts() const {
    const i64 dim = x_.dims[static_cast<std::size_t>(x_.mode)];
    const auto rows = static_cast<std::size_t>(x_.rows);
    if (x_.tiles == 1)
      return {dim, {x_.row_index, rows}, {x_.row_begin, rows + 1}};
    return {dim, index_, begin_};
  }

  /// The stored entries from the row's first + part.begin to the row's first + part.end.
  Range stored(i64 row, Range part) const {
    Range found;
    i64 before = 0; // entries of the row in the tiles so far
    for (i64 tile = 0; tile < x_.tiles; ++tile) {
      const i64 slot = slot_in(tile, row);
      if (slot < 0)
        continue;
      const i64 after = before + x_.row_begin[slot + 1] - x_.row_begin[slot];
      if (before <= part.begin && part.begin < after)
        found.begin = x_.row_begin[slot] + part.begin - before;
      if (before < part.end && part.end <= after)
        found.end = x_.row_begin[slot] + part.end - before;
      before = after;
    }
    return found;
  }

private:
  /// The tile's slot of a row, or -1. Heavy and light rows of a tile stand in two ascending lists.
  i64 slot_in(i64 tile, i64 row) const {
    const i64 begin = x_.tile_begin[tile];
    const i64 end = x_.tile_begin[tile + 1];
    const i64 light = x_.tiles > 1 ? x_.tile_light[tile] : begin;
    for (const Range slots : {Range{begin, light}, Range{light, end}}) {
      const i64 *last = x_.row_index + slots.end;
      const i64 *at = std::lower_bound(x_.row_index + slots.begin, last, row);
      if (at != last && *at == row)
        return at - x_.row_index;
    }
    return -1;
  }

  const kernels::SortedView &x_;
  std::vector<i64> index_, begin_; // of all tiles together, where there are several
};

Sharded shard_evenly(i64 dim, i64 entries, int workers) {
  Sharded even{plan::partition_evenly(dim, entries, workers), {}, {}};
  for (int worker = 0; worker < workers; ++worker)
    even.loads.push_back({even.partition.whole_rows(worker), {}});
  return even;
}

} // namespace

PartitionKind partition_kind(plan::ShardingRule rule, bool deterministic) {
  if (deterministic || rule == plan::ShardingRule::rows)
    return PartitionKind::rows;
  return rule == plan::ShardingRule::entries ? PartitionKind::entries : PartitionKind::split_rows;
}

plan::Partition partition_by(const plan::RowCounts &counts, int workers, PartitionKind kind) {
  return kind == PartitionKind::entries ? partition_entries(counts, workers)
                                        : partition_rows(counts, workers, kind == PartitionKind::split_rows);
}

Sharded shard_copy(const kernels::SortedView &x, int workers, PartitionKind kind) {
  const StoredRows rows(x);
  Sharded sharded{partition_by(rows.counts(), workers, kind), {}, {}};
  for (int worker = 0; worker < workers; ++worker)
    sharded.loads.push_back({sharded.partition.whole_rows(worker), {}});
  for (const plan::SplitRow &row : sharded.partition.split) {
    for (Load &load : sharded.loads)
      load.split.push_back({row.row, {}});
    for (const plan::SplitRow::Segment &segment : row.segments)
      sharded.loads[static_cast<std::size_t>(segment.worker)].split.back().entries =
          rows.stored(row.row, segment.entries);
  }
  return sharded;
}

Sharding::Sharding(const Tensor &x, int workers, bool deterministic)
    : workers_(workers), deterministic_(deterministic),
      by_entries_(workers > 1 && !x.partitioned_by_rows() &&
                  !plan::needs_all_entries(workers, x.settings().sharding, deterministic)) {
  for (int mode = 0; mode < x.order(); ++mode)
    rows_.push_back(shard_mode(x, mode));
  for (int group = 0; group < x.groups().count(); ++group)
    cells_.push_back(x.groups().modes(group).size() > 1 ? shard_cells(x, group) : Sharded{});
}

Sharded Sharding::shard_mode(const Tensor &x, int mode) const {
  const i64 dim = x.stored_dims()[static_cast<std::size_t>(mode)];
  const bool alone = x.groups().modes(x.groups().group_of(mode)).size() == 1;
  if (workers_ > 1 && x.sparse() && x.partitioned_by_rows() && alone) {
    if (const Sharded *made = x.sharded(mode, workers_); made != nullptr && !deterministic_)
      return *made;
    const PartitionKind kind = partition_kind(x.settings().sharding, deterministic_);
    return shard_copy(std::get<kernels::SortedView>(x.view(mode, OnHost::lists)), workers_, kind);
  }
  Sharded even = shard_evenly(dim, x.stored_entries(), workers_);
  if (!x.partitioned_by_rows() && !by_entries_)
    std::fill(even.partition.load.begin(), even.partition.load.end(), x.stored_entries()); // each looks at all entries
  return even;
}

Sharded Sharding::shard_cells(const Tensor &x, int group) const {
  const kernels::TensorView merged = x.merged_view(group, OnHost::lists);
  const auto *view = std::get_if<kernels::SortedView>(&merged);
  if (workers_ == 1 || view == nullptr || x.stored_entries() == 0) // a copy without entries has a row all the same
    return shard_evenly(x.groups().cell_count(group), x.stored_entries(), workers_);
  return shard_copy(*view, workers_, deterministic_ ? PartitionKind::rows : PartitionKind::entries);
}

} // namespace td::tensor
