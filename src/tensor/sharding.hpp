// Sharding says what part of a tensor's work each worker does.
#pragma once

#include "plan/partition.hpp"
#include "tensor/selection.hpp"
#include "tensor/tensor.hpp"

namespace td::tensor {

/// What one worker sums up, of the rows of a mode or of the cells of a group.
struct Load {
  struct RowSegment {
    i64 row = 0;
    Range entries; // stored ones, of which those of the row count; empty: none
  };
  Ranges whole;                  // rows that it sums alone
  std::vector<RowSegment> split; // one for each row that several workers sum, whether this one is among them or not
};

struct Sharded {
  plan::Partition partition;
  std::vector<Load> loads; // [workers]
  /// What these are of a stored copy; of one whose rows are listed on the host: nothing, since select_load finds it.
  std::vector<Selection> selected; // [workers]
};

enum class PartitionKind { rows, split_rows, entries };
PartitionKind partition_kind(plan::ShardingRule rule, bool deterministic);
/// This is partition_rows, with or without split rows, or partition_entries.
plan::Partition partition_by(const plan::RowCounts &counts, int workers, PartitionKind kind);

/// The rows of a sorted copy, by partition_by.
Sharded shard_copy(const kernels::SortedView &x, int workers, PartitionKind kind);

/// One worker's loads are the same in every sweep: they are found once, for all workers.
class Sharding {
public:
  /// The tensor's option "sharding" decides; if `deterministic`, no worker's sums are added to another's.
  Sharding(const Tensor &x, int workers, bool deterministic);

  int workers() const noexcept { return workers_; }
  bool deterministic() const noexcept { return deterministic_; }

  /// Whether each worker takes part_of(stored entries) and computes terms of all rows, which are then summed; else it
  /// computes load(mode, worker).
  bool by_entries() const noexcept { return by_entries_; }

  /// Who owns which rows of stored_dims, and so of factors; and of a mode that is alone in its group, loads.
  const plan::Partition &rows(int mode) const { return rows_[static_cast<std::size_t>(mode)].partition; }
  const Load &load(int mode, int worker) const { return load(rows_, mode, worker); }
  /// What the load is of the mode's copy, or null where it is still to be found (select_load).
  const Selection *selected(int mode, int worker) const {
    const std::vector<Selection> &all = rows_[static_cast<std::size_t>(mode)].selected;
    return all.empty() ? nullptr : &all[static_cast<std::size_t>(worker)];
  }

  /// These tell the same of the cells of a group of several modes. Without `deterministic` each worker's cells, those
  /// of split ones included, follow one another.
  const plan::Partition &cells(int group) const { return cells_[static_cast<std::size_t>(group)].partition; }
  const Load &cell_load(int group, int worker) const { return load(cells_, group, worker); }

private:
  static const Load &load(const std::vector<Sharded> &of, int index, int worker) {
    return of[static_cast<std::size_t>(index)].loads[static_cast<std::size_t>(worker)];
  }
  Sharded shard_mode(const Tensor &x, int mode) const;
  Sharded shard_cells(const Tensor &x, int group) const;

  int workers_;
  bool deterministic_;
  bool by_entries_;
  std::vector<Sharded> rows_;  // [order]
  std::vector<Sharded> cells_; // [groups]; of a mode alone: nothing
};

} // namespace td::tensor
