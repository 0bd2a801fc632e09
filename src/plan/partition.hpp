// These functions partition the rows of one mode between workers, from how many stored entries the rows have.
#pragma once

#include <span>
#include <vector>

#include "core/views.hpp"
#include "plan/settings.hpp"

namespace td::plan {

/// Stored entries in the rows of one mode, counted in the order of rows.
class RowCounts {
public:
  virtual ~RowCounts() = default;
  i64 dim() const noexcept { return dim_; }
  i64 entries() const noexcept { return entries_; }
  /// Entries in the rows before one; of dim(): all.
  virtual i64 before(i64 row) const = 0;
  /// The row that holds an entry, 0 <= entry < entries().
  virtual i64 row_of(i64 entry) const = 0;
  /// The rows of these entries are asked for next: whoever has to search for rows may search for all at once.
  virtual void expect(std::span<const i64> /*entries*/) const {}

protected:
  RowCounts(i64 dim, i64 entries) : dim_(dim), entries_(entries) {}

private:
  i64 dim_;
  i64 entries_;
};

/// The k-th row that has entries is row_index[k] and has the entries [row_begin[k], row_begin[k + 1]). Keeps the
/// arrays.
class ListedRows final : public RowCounts {
public:
  ListedRows(i64 dim, std::span<const i64> row_index, std::span<const i64> row_begin);
  i64 before(i64 row) const override;
  i64 row_of(i64 entry) const override;

private:
  std::span<const i64> row_index_, row_begin_;
};

/// Every row has about the same number of entries.
class EvenRows final : public RowCounts {
public:
  EvenRows(i64 dim, i64 entries) : RowCounts(dim, entries) {}
  i64 before(i64 row) const override;
  i64 row_of(i64 entry) const override;
};

/// A row whose entries several workers sum. Their loads stand in the order of the workers and cover its entries,
/// counted from the row's first, once.
struct SplitRow {
  struct Segment {
    int worker = 0;
    Range entries;
  };
  i64 row = 0;
  int owner = 0; // whose ranges hold the row
  std::vector<Segment> segments;
};

/// How the work on one mode is partitioned between workers.
struct Partition {
  std::vector<std::vector<Range>> owned; // [workers] ascending, no two adjacent; together each row of the mode once
  std::vector<SplitRow> split;           // ascending
  std::vector<i64> load;                 // [workers] stored entries
  double unsplit = 0; // where rows are split: the imbalance that there is if none may be (partition_rows)

  int workers() const noexcept { return static_cast<int>(load.size()); }
  /// Rows that a worker sums alone: its own but for the split ones.
  std::vector<Range> whole_rows(int worker) const;
  i64 largest_load() const;
  /// Largest load / mean load - 1; 0 without entries.
  double imbalance() const;
  /// The same if no row may be split.
  double imbalance_unsplit() const { return split.empty() ? imbalance() : unsplit; }
};

/// More shards are made, where they help, until the largest load is this near to the mean.
inline constexpr double wanted_imbalance = 0.02;
/// What split rows keep the imbalance below.
inline constexpr double most_imbalance = 0.05;

/// This is AMPED's partition (Wijeratne et al. 2025): the rows are cut into shards, contiguous ranges with about
/// equally many entries; these are taken in descending order of entries, each by the worker that has least so far
/// (Graham 1969: at most 4/3 - 1/(3 workers) of the best that these shards allow). There are 1, 4, 16 or 128 shards a
/// worker, as few as wanted_imbalance takes, so that a worker mostly gets one range.
///
/// Beyond AMPED, with split_rows: what a worker has above the mean of a row heavier than the mean goes to workers
/// below it; and where 128 shards a worker leave a worker above most_imbalance, so does what it has of a lighter row.
/// No worker then has more than 1.05 times the mean, rounded up.
Partition partition_rows(const RowCounts &counts, int workers, bool split_rows);

/// This one is for comparison: worker k of n takes the k-th n-th of the entries, and rows at the borders are split.
Partition partition_entries(const RowCounts &counts, int workers);

/// All rows in contiguous ranges, whose numbers of rows differ by at most one; for entries that stand in no order of
/// rows. The loads are those of partition_entries.
Partition partition_evenly(i64 dim, i64 entries, int workers);

/// Whether workers whose memories are their own take slabs of a dense tensor, of which there are so many and each
/// adds to all rows of the other modes. Else each needs all elements for its rows.
bool takes_slabs(i64 slabs, int workers, ShardingRule rule, bool deterministic);

/// Whether each of such workers needs all entries, in no order of rows, for its own rows; else it sums some for all.
inline bool needs_all_entries(int workers, ShardingRule rule, bool deterministic) {
  return workers > 1 && (deterministic || rule == ShardingRule::rows);
}

/// Whether each of several GPUs computes all rows, as one alone does: the kernels of such formats cut the sum of a row
/// by what else they work on.
inline bool computes_all_rows(Format format, bool deterministic) { return deterministic && stands_by_rows(format); }

} // namespace td::plan
