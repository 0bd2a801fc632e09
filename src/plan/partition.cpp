#include "plan/partition.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace td::plan {

namespace {

i64 rounded_up(i64 a, i64 b) { return a / b + (a % b > 0 ? 1 : 0); }

/// Neighbouring rows that one worker takes.
struct Shard {
  Range rows;
  i64 entries = 0;
  i64 long_row = -1; // the only one that has entries, if it has more than a load
};

/// Cuts the rows at the row borders nearest to equal loads, and around each row that is longer than such a load. So a
/// shard is such a row, or has at most two loads. Each has entries.
std::vector<Shard> shards_of(const RowCounts &counts, i64 wanted) {
  const i64 count = std::min(wanted, counts.entries());
  const i64 load = rounded_up(counts.entries(), count);
  std::vector<i64> begins; // of the loads
  for (i64 k = 0; k < count; ++k)
    begins.push_back(part_of({0, counts.entries()}, k, count).begin);
  counts.expect(begins);
  std::vector<i64> cuts{0, counts.dim()}, long_rows;
  for (const i64 at : begins) {
    const i64 row = counts.row_of(at);
    const i64 begin = counts.before(row);
    const i64 end = counts.before(row + 1);
    const bool is_long = end - begin > load;
    if (is_long || at - begin <= end - at)
      cuts.push_back(row);
    if (is_long || at - begin > end - at)
      cuts.push_back(row + 1);
    if (is_long)
      long_rows.push_back(row);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Shard> shards;
  i64 begin = 0; // of the next shard: before its first row that has entries
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const Range rows{cuts[k], cuts[k + 1]};
    if (const i64 entries = counts.before(rows.end) - counts.before(rows.begin); entries > 0)
      shards.push_back({{std::exchange(begin, rows.end), rows.end},
                        entries,
                        std::binary_search(long_rows.begin(), long_rows.end(), rows.begin) ? rows.begin : -1});
    else if (!shards.empty())
      shards.back().rows.end = begin = rows.end;
  }
  return shards;
}

/// Loads with their workers, the least loaded worker on top.
using Load = std::pair<i64, int>;
using LeastLoaded = std::priority_queue<Load, std::vector<Load>, std::greater<>>;

/// The worker of each shard by Graham's rule. Workers are numbered by the first shard that they have.
std::vector<int> assign(const std::vector<Shard> &shards, int workers) {
  std::vector<std::size_t> order(shards.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    order[k] = k;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shards[a].entries > shards[b].entries; });
  LeastLoaded least;
  for (int w = 0; w < workers; ++w)
    least.emplace(0, w);
  std::vector<int> taker(shards.size());
  for (const std::size_t k : order) {
    const auto [load, worker] = least.top();
    least.pop();
    taker[k] = worker;
    least.emplace(load + shards[k].entries, worker);
  }
  std::vector<int> number(static_cast<std::size_t>(workers), -1);
  int next = 0;
  for (int &worker : taker) {
    int &n = number[static_cast<std::size_t>(worker)];
    if (n < 0)
      n = next++;
    worker = n;
  }
  return taker;
}

/// One attempt: shards, who takes them, and rows that are then split.
class Attempt {
public:
  Attempt(const RowCounts &counts, int workers, i64 shards_per_worker)
      : shards_(shards_of(counts, shards_per_worker * workers)), taker_(assign(shards_, workers)),
        mean_(rounded_up(counts.entries(), workers)) {
    partition_.owned.resize(static_cast<std::size_t>(workers));
    partition_.load.resize(static_cast<std::size_t>(workers));
    for (std::size_t k = 0; k < shards_.size(); ++k) {
      const Range rows = shards_[k].rows;
      load(taker_[k]) += shards_[k].entries;
      auto &ranges = partition_.owned[static_cast<std::size_t>(taker_[k])];
      if (!ranges.empty() && ranges.back().end == rows.begin)
        ranges.back().end = rows.end;
      else
        ranges.push_back(rows);
    }
  }

  i64 mean() const { return mean_; }

  /// Workers with more than `most` give parts of their longest row, if it is longer than `longer_than`, to those below
  /// the mean.
  void level(i64 most, i64 longer_than) {
    const std::vector<const Shard *> longest_rows = longest_row_of_each();
    LeastLoaded least; // those above the mean need not be right: they get no more
    for (int w = 0; w < partition_.workers(); ++w)
      least.emplace(load(w), w);
    for (int w = 0; w < partition_.workers(); ++w) {
      if (load(w) <= most)
        continue;
      const Shard *longest = longest_rows[static_cast<std::size_t>(w)];
      if (longest != nullptr && longest->entries > longer_than)
        split(*longest, w, least);
    }
  }

  Partition take() {
    std::sort(partition_.split.begin(), partition_.split.end(),
              [](const SplitRow &a, const SplitRow &b) { return a.row < b.row; });
    return std::move(partition_);
  }
  const Partition &partition() const { return partition_; }

private:
  i64 &load(int worker) { return partition_.load[static_cast<std::size_t>(worker)]; }

  /// Each worker's longest row that is a shard by itself, or null.
  std::vector<const Shard *> longest_row_of_each() const {
    std::vector<const Shard *> longest(partition_.load.size());
    for (std::size_t k = 0; k < shards_.size(); ++k) {
      const Shard *&so_far = longest[static_cast<std::size_t>(taker_[k])];
      if (shards_[k].long_row >= 0 && (so_far == nullptr || shards_[k].entries > so_far->entries))
        so_far = &shards_[k];
    }
    return longest;
  }

  void split(const Shard &shard, int owner, LeastLoaded &least) {
    std::vector<std::pair<int, i64>> loads;
    i64 excess = std::min(load(owner) - mean_, shard.entries);
    loads.emplace_back(owner, shard.entries - excess);
    load(owner) -= excess;
    while (excess > 0) { // all together have at most workers * mean, so somebody is below the mean
      const int worker = least.top().second;
      least.pop();
      const i64 given = std::min(excess, mean_ - load(worker));
      loads.emplace_back(worker, given);
      load(worker) += given;
      least.emplace(load(worker), worker);
      excess -= given;
    }
    std::sort(loads.begin(), loads.end());
    SplitRow row{shard.long_row, owner, {}};
    i64 begin = 0;
    for (const auto &[worker, entries] : loads) {
      if (entries > 0)
        row.segments.push_back({worker, {begin, begin + entries}});
      begin += entries;
    }
    partition_.split.push_back(std::move(row));
  }

  std::vector<Shard> shards_;
  std::vector<int> taker_; // [shards]
  i64 mean_;               // rounded up
  Partition partition_;
};

} // namespace

ListedRows::ListedRows(i64 dim, std::span<const i64> row_index, std::span<const i64> row_begin)
    : RowCounts(dim, row_index.empty() ? 0 : row_begin.back()), row_index_(row_index), row_begin_(row_begin) {}

i64 ListedRows::before(i64 row) const {
  const auto next = std::lower_bound(row_index_.begin(), row_index_.end(), row);
  return row_begin_[static_cast<std::size_t>(next - row_index_.begin())];
}

i64 ListedRows::row_of(i64 entry) const {
  const auto next = std::upper_bound(row_begin_.begin(), row_begin_.end(), entry);
  return row_index_[static_cast<std::size_t>(next - row_begin_.begin()) - 1];
}

i64 EvenRows::before(i64 row) const { return row == dim() ? entries() : part_of({0, entries()}, row, dim()).begin; }

i64 EvenRows::row_of(i64 entry) const {
  Range rows{0, dim()}; // the last row that begins at or before the entry, and the next
  while (rows.size() > 1) {
    const i64 middle = rows.begin + rows.size() / 2;
    (before(middle) <= entry ? rows.begin : rows.end) = middle;
  }
  return rows.begin;
}

std::vector<Range> Partition::whole_rows(int worker) const {
  std::vector<Range> whole;
  for (const Range &range : owned[static_cast<std::size_t>(worker)]) {
    i64 begin = range.begin;
    for (const SplitRow &s : split) {
      if (s.row < range.begin || s.row >= range.end)
        continue;
      if (s.row > begin)
        whole.push_back({begin, s.row});
      begin = s.row + 1;
    }
    if (range.end > begin)
      whole.push_back({begin, range.end});
  }
  return whole;
}

i64 Partition::largest_load() const { return *std::max_element(load.begin(), load.end()); }

double Partition::imbalance() const {
  double sum = 0;
  for (const i64 entries : load)
    sum += static_cast<double>(entries);
  return sum > 0 ? static_cast<double>(largest_load()) * static_cast<double>(load.size()) / sum - 1 : 0;
}

Partition partition_rows(const RowCounts &counts, int workers, bool split_rows) {
  if (workers == 1 || counts.entries() == 0)
    return partition_evenly(counts.dim(), counts.entries(), workers);
  constexpr i64 shards_per_worker[] = {1, 4, 16, 128};
  Partition best;
  for (const i64 shards : shards_per_worker) {
    Attempt attempt(counts, workers, shards);
    if (split_rows)
      attempt.level(attempt.mean(), attempt.mean());
    const auto most = static_cast<i64>(static_cast<double>(attempt.mean()) * (1 + most_imbalance));
    if (split_rows && shards == shards_per_worker[3])
      attempt.level(most, 0);
    if (best.load.empty() || attempt.partition().largest_load() < best.largest_load())
      best = attempt.take();
    if (best.imbalance() <= wanted_imbalance)
      break;
  }
  if (!best.split.empty())
    best.unsplit = partition_rows(counts, workers, false).imbalance();
  return best;
}

Partition partition_entries(const RowCounts &counts, int workers) {
  if (workers == 1 || counts.entries() == 0)
    return partition_evenly(counts.dim(), counts.entries(), workers);
  // A row is owned by who has its first entry.
  const auto first_row = [&](i64 entry) {
    if (entry == 0)
      return i64{0};
    if (entry == counts.entries())
      return counts.dim();
    const i64 row = counts.row_of(entry);
    return row + (counts.before(row) < entry ? 1 : 0);
  };
  std::vector<i64> borders;
  for (int w = 0; w < workers; ++w)
    if (const Range mine = part_of({0, counts.entries()}, w, workers); mine.size() > 0)
      borders.insert(borders.end(), {mine.begin, mine.end - 1});
  counts.expect(borders);
  Partition d;
  d.unsplit = partition_rows(counts, workers, false).imbalance();
  for (int w = 0; w < workers; ++w) {
    const Range mine = part_of({0, counts.entries()}, w, workers);
    d.load.push_back(mine.size());
    auto &owned = d.owned.emplace_back();
    const Range rows{first_row(mine.begin), first_row(mine.end)};
    if (rows.size() > 0)
      owned.push_back(rows);
    if (mine.size() == 0)
      continue;
    std::vector<i64> ends{counts.row_of(mine.begin), counts.row_of(mine.end - 1)};
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    for (const i64 at : ends) {
      const Range row{counts.before(at), counts.before(at + 1)};
      const Range part{std::max(row.begin, mine.begin), std::min(row.end, mine.end)};
      if (part.size() == row.size())
        continue;
      if (d.split.empty() || d.split.back().row != at)
        d.split.push_back({at, w, {}});
      d.split.back().segments.push_back({w, {part.begin - row.begin, part.end - row.begin}});
    }
  }
  return d;
}

bool takes_slabs(i64 slabs, int workers, ShardingRule rule, bool deterministic) {
  return workers > 1 && !deterministic && rule != ShardingRule::rows && slabs >= workers;
}

Partition partition_evenly(i64 dim, i64 entries, int workers) {
  Partition d;
  for (int w = 0; w < workers; ++w) {
    d.load.push_back(part_of({0, entries}, w, workers).size());
    auto &owned = d.owned.emplace_back();
    if (const Range rows = part_of({0, dim}, w, workers); rows.size() > 0)
      owned.push_back(rows);
  }
  return d;
}

} // namespace td::plan
