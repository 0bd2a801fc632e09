#include "tensor/joint_counts.hpp"

#include <algorithm>
#include <numeric>

namespace td::tensor {

std::vector<CountedRow> count_rows(kernels::DeviceBuilding &entries, const kernels::CopyPlan &plan,
                                   const Ranges &rows) {
  const auto some = entries.with_fields(plan.row_shift, plan.row_bits, rows);
  if (some->size() == 0)
    return {};
  some->sort_by(plan.row_shift, plan.row_bits);
  const std::vector<i64> begins = some->runs(((u128{1} << plan.row_bits) - 1) << plan.row_shift);
  const std::vector<u128> keys = some->keys(std::span(begins).first(begins.size() - 1));
  std::vector<CountedRow> counted;
  for (std::size_t k = 0; k < keys.size(); ++k)
    counted.push_back({index_in(keys[k], plan.row_shift, plan.row_bits), begins[k + 1] - begins[k]});
  return counted;
}

BucketCounts::BucketCounts(i64 dim, int shift, std::span<const i64> counts, Look look)
    : RowCounts(dim, std::accumulate(counts.begin(), counts.end(), i64{0})), shift_(shift), begin_{0},
      look_(std::move(look)) {
  for (const i64 count : counts)
    begin_.push_back(begin_.back() + count);
}

i64 BucketCounts::before(i64 row) const {
  if (row == dim())
    return entries();
  const i64 bucket = row >> shift_;
  if (bucket << shift_ == row)
    return begin_[static_cast<std::size_t>(bucket)];
  const Rows &rows = rows_of(bucket);
  const auto next = std::lower_bound(rows.index.begin(), rows.index.end(), row);
  return rows.begin[static_cast<std::size_t>(next - rows.index.begin())];
}

i64 BucketCounts::row_of(i64 entry) const {
  const i64 bucket = bucket_with(entry);
  if (shift_ == 0)
    return bucket;
  const Rows &rows = rows_of(bucket);
  const auto next = std::upper_bound(rows.begin.begin(), rows.begin.end(), entry);
  return rows.index[static_cast<std::size_t>(next - rows.begin.begin()) - 1];
}

i64 BucketCounts::bucket_with(i64 entry) const {
  return std::upper_bound(begin_.begin(), begin_.end(), entry) - begin_.begin() - 1;
}

void BucketCounts::expect(std::span<const i64> entries) const {
  if (shift_ == 0)
    return;
  std::vector<i64> buckets;
  for (const i64 entry : entries)
    buckets.push_back(bucket_with(entry));
  look_into(std::move(buckets));
}

const BucketCounts::Rows &BucketCounts::rows_of(i64 bucket) const {
  if (seen_.count(bucket) == 0)
    look_into({bucket});
  return seen_.at(bucket);
}

void BucketCounts::look_into(std::vector<i64> buckets) const {
  std::erase_if(buckets, [&](i64 bucket) { return seen_.count(bucket) > 0; });
  std::sort(buckets.begin(), buckets.end());
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  if (buckets.empty())
    return;
  Ranges ranges;
  for (const i64 bucket : buckets) {
    const Range rows{bucket << shift_, std::min(dim(), (bucket + 1) << shift_)};
    if (!ranges.empty() && ranges.back().end == rows.begin)
      ranges.back().end = rows.end;
    else
      ranges.push_back(rows);
    seen_[bucket].begin.push_back(begin_[static_cast<std::size_t>(bucket)]);
  }
  for (const CountedRow &counted : look_(ranges)) {
    Rows &rows = seen_.at(counted.row >> shift_);
    rows.index.push_back(counted.row);
    rows.begin.push_back(rows.begin.back() + counted.entries);
  }
}

} // namespace td::tensor
