// The rows of a mode, counted where several devices have the entries.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "kernels/building.hpp"
#include "plan/partition.hpp"

namespace td::tensor {

/// A field of a packed key that holds an index.
inline i64 index_in(u128 key, int shift, int bits) {
  return static_cast<i64>(key >> shift & ((u128{1} << bits) - 1)); // bits < 64
}

struct CountedRow {
  i64 row = 0;
  i64 entries = 0;
};

/// The rows in some ranges that have entries on a device, ascending.
std::vector<CountedRow> count_rows(kernels::DeviceBuilding &entries, const kernels::CopyPlan &plan, const Ranges &rows);

/// Rows are counted in buckets of neighbours first, and one by one only in buckets where a partition looks: rows may be
/// so many that listing them on the host takes longer than all that devices do.
class BucketCounts final : public plan::RowCounts {
public:
  static constexpr int bits = 15; // of a bucket's number: as many counters as fit a multiprocessor's shared memory

  /// Gives the rows in some ranges that have entries, ascending.
  using Look = std::function<std::vector<CountedRow>(const Ranges &rows)>;
  /// `counts`: of each bucket of 2^shift rows.
  BucketCounts(i64 dim, int shift, std::span<const i64> counts, Look look);

  i64 before(i64 row) const override;
  i64 row_of(i64 entry) const override;
  void expect(std::span<const i64> entries) const override;

private:
  struct Rows {
    std::vector<i64> index; // of those that have entries
    std::vector<i64> begin; // entries before each, and before the next bucket
  };
  i64 bucket_with(i64 entry) const;
  const Rows &rows_of(i64 bucket) const;
  void look_into(std::vector<i64> buckets) const;

  int shift_;
  std::vector<i64> begin_; // [buckets + 1] entries before each
  Look look_;
  mutable std::map<i64, Rows> seen_;
};

} // namespace td::tensor
