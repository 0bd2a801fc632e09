// Dividing rows between workers.
#include "plan/partition.hpp"

#include <cmath>
#include <random>
#include <string>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace {

using namespace td;
using plan::EvenRows;
using plan::ListedRows;
using plan::Partition;

/// Rows of one mode by their counts, of which some may be 0.
struct Rows {
  std::string name;
  std::vector<i64> count;
  std::vector<i64> index, begin;

  Rows(std::string text, std::vector<i64> counts) : name(std::move(text)), count(std::move(counts)), begin{0} {
    for (std::size_t i = 0; i < count.size(); ++i) {
      if (count[i] == 0)
        continue;
      index.push_back(static_cast<i64>(i));
      begin.push_back(begin.back() + count[i]);
    }
  }
  i64 dim() const { return static_cast<i64>(count.size()); }
  i64 entries() const { return begin.back(); }
  ListedRows counts() const { return {dim(), index, begin}; }
};

constexpr unsigned seed = 20261;

Rows zipf(i64 rows, i64 entries, double exponent) {
  std::mt19937 engine(seed);
  std::vector<i64> count;
  double sum = 0;
  for (i64 i = 1; i <= rows; ++i)
    sum += std::pow(static_cast<double>(i), -exponent);
  for (i64 i = 1; i <= rows; ++i)
    count.push_back(std::lround(static_cast<double>(entries) * std::pow(static_cast<double>(i), -exponent) / sum));
  std::shuffle(count.begin(), count.end(), engine);
  return {fmt::format("Zipf {}", exponent), count};
}

Rows one_heavy(i64 rows, i64 entries, double share, i64 where) {
  const auto heavy = std::lround(share * static_cast<double>(entries));
  std::vector<i64> count(static_cast<std::size_t>(rows), (entries - heavy) / (rows - 1));
  count[static_cast<std::size_t>(where)] = heavy;
  return {fmt::format("{} % in row {} of {}", 100 * share, where, rows), count};
}

Rows random_rows(i64 rows, i64 most) {
  std::mt19937 engine(seed);
  std::vector<i64> count;
  for (i64 i = 0; i < rows; ++i)
    count.push_back(engine() % 3 == 0 ? 0 : static_cast<i64>(engine() % static_cast<unsigned>(most)));
  return {fmt::format("random {} x {}", rows, most), count};
}

std::vector<Rows> cases() {
  return {{"empty", std::vector<i64>(10, 0)},
          {"one entry", {0, 0, 1, 0}},
          {"one row", {1000}},
          {"one row of many", {0, 0, 0, 1000, 0, 0}},
          {"uniform", std::vector<i64>(1000, 10)},
          {"few rows", {5, 5, 5}},
          {"fewer entries than workers", {1, 0, 1, 1}},
          {"thirds", {1000, 1000, 1000}},
          zipf(5000, 1000000, 1),
          zipf(5000, 1000000, 0.5),
          zipf(100, 100000, 2),
          one_heavy(1000, 1000000, 0.6, 0),
          one_heavy(1000, 1000000, 0.6, 517),
          one_heavy(1000, 1000000, 0.6, 999),
          one_heavy(2, 10, 0.6, 1),
          random_rows(3, 50),
          random_rows(200, 1000),
          random_rows(20000, 7)};
}

const int worker_counts[] = {1, 2, 3, 4, 7, 40};

i64 rounded_up(i64 a, i64 b) { return (a + b - 1) / b; }

/// Every row has one owner; a split row's parts cover it once; the loads are the entries.
void expect_sound(const Partition &d, const Rows &rows, int workers) {
  ASSERT_EQ(d.workers(), workers);
  ASSERT_EQ(d.owned.size(), static_cast<std::size_t>(workers));
  std::vector<int> owner(rows.count.size(), -1);
  std::vector<i64> load(static_cast<std::size_t>(workers), 0);
  for (int w = 0; w < workers; ++w) {
    i64 end = -1;
    for (const Range r : d.owned[static_cast<std::size_t>(w)]) {
      EXPECT_GT(r.begin, end) << "ranges in order, and joined where they meet";
      EXPECT_GT(r.size(), 0);
      end = r.end;
      for (i64 i = r.begin; i < r.end; ++i) {
        ASSERT_EQ(owner.at(static_cast<std::size_t>(i)), -1) << "row " << i;
        owner[static_cast<std::size_t>(i)] = w;
      }
    }
    for (const Range r : d.whole_rows(w))
      for (i64 i = r.begin; i < r.end; ++i) {
        EXPECT_EQ(owner[static_cast<std::size_t>(i)], w);
        load[static_cast<std::size_t>(w)] += rows.count[static_cast<std::size_t>(i)];
        owner[static_cast<std::size_t>(i)] = w + workers; // seen
      }
  }
  i64 before = -1;
  for (const auto &s : d.split) {
    EXPECT_GT(s.row, before);
    before = s.row;
    EXPECT_EQ(owner[static_cast<std::size_t>(s.row)], s.owner);
    owner[static_cast<std::size_t>(s.row)] += workers;
    i64 end = 0;
    int last = -1;
    for (const auto &some : s.segments) {
      EXPECT_GT(some.worker, last);
      EXPECT_EQ(some.entries.begin, end);
      EXPECT_GT(some.entries.size(), 0);
      last = some.worker;
      end = some.entries.end;
      load[static_cast<std::size_t>(some.worker)] += some.entries.size();
    }
    EXPECT_EQ(end, rows.count[static_cast<std::size_t>(s.row)]);
  }
  for (const int o : owner)
    EXPECT_GE(o, workers) << "every row is summed";
  EXPECT_EQ(d.load, load);
}

std::string text_of(const Partition &d) {
  std::string text;
  for (int w = 0; w < d.workers(); ++w) {
    text += fmt::format("{}:", d.load[static_cast<std::size_t>(w)]);
    for (const Range r : d.owned[static_cast<std::size_t>(w)])
      text += fmt::format(" {}-{}", r.begin, r.end);
    text += '\n';
  }
  for (const auto &s : d.split) {
    text += fmt::format("{} of {}:", s.row, s.owner);
    for (const auto &some : s.segments)
      text += fmt::format(" {}-{} by {}", some.entries.begin, some.entries.end, some.worker);
    text += '\n';
  }
  return text;
}

TEST(PlanPartition, EveryEntryBelongsToOneWorker) {
  for (const Rows &rows : cases())
    for (const int workers : worker_counts) {
      SCOPED_TRACE(fmt::format("{}, {} workers", rows.name, workers));
      expect_sound(plan::partition_rows(rows.counts(), workers, true), rows, workers);
      expect_sound(plan::partition_rows(rows.counts(), workers, false), rows, workers);
      expect_sound(plan::partition_entries(rows.counts(), workers), rows, workers);
    }
}

TEST(PlanPartition, WholeRowsStayWithinGrahamsBound) {
  for (const Rows &rows : cases())
    for (const int workers : worker_counts) {
      SCOPED_TRACE(fmt::format("{}, {} workers", rows.name, workers));
      const Partition d = plan::partition_rows(rows.counts(), workers, false);
      EXPECT_TRUE(d.split.empty());
      // A worker that is given a shard had at most the mean of the others' entries before. A shard is one row, or at
      // the finest (128 shards a worker, but at least one entry a shard) two of that load.
      const i64 longest = *std::max_element(rows.count.begin(), rows.count.end());
      const double mean = static_cast<double>(rows.entries()) / workers;
      const double shard = std::max(static_cast<double>(longest), 2 * std::ceil(mean / 128));
      EXPECT_LE(static_cast<double>(d.largest_load()), mean + shard * (1 - 1.0 / workers) + 1e-9);
    }
}

TEST(PlanPartition, SplitRowsBalanceWhateverTheRowsAre) {
  for (const Rows &rows : cases())
    for (const int workers : worker_counts) {
      SCOPED_TRACE(fmt::format("{}, {} workers", rows.name, workers));
      const Partition d = plan::partition_rows(rows.counts(), workers, true);
      const auto mean = static_cast<double>(rows.entries()) / workers;
      EXPECT_LE(d.largest_load(), std::max<i64>(rounded_up(rows.entries(), workers),
                                                static_cast<i64>(std::ceil(mean) * (1 + plan::most_imbalance))));
      if (rows.entries() >= 1000 * workers) {
        EXPECT_LT(d.imbalance(), plan::most_imbalance);
      }
      const Partition e = plan::partition_entries(rows.counts(), workers);
      EXPECT_LE(e.largest_load(), rounded_up(rows.entries(), workers));
      EXPECT_LT(d.split.size(), static_cast<std::size_t>(workers) + 1);
      EXPECT_LT(e.split.size(), static_cast<std::size_t>(workers) + 1);
    }
}

TEST(PlanPartition, ARowOf60PercentIsEveryonesWork) {
  const Rows rows = one_heavy(1000, 1000000, 0.6, 517);
  // Two workers: one row of 600,000 entries, 999 of 400. The mean is 499,800; what the row has above it is given away.
  const Partition two = plan::partition_rows(rows.counts(), 2, true);
  ASSERT_EQ(two.split.size(), 1U);
  EXPECT_EQ(two.split[0].row, 517);
  EXPECT_EQ(two.load, (std::vector<i64>{499800, 499800}));
  EXPECT_EQ(two.owned[static_cast<std::size_t>(two.split[0].owner)].size(), 1U);
  EXPECT_EQ(two.split[0].segments.size(), 2U);
  // Without splitting it stands on one worker: 600,000 / 499,800 - 1.
  EXPECT_NEAR(plan::partition_rows(rows.counts(), 2, false).imbalance(), 0.2005, 1e-4);
  // Seven workers: a mean of 142,800 is less than a quarter of the row.
  const Partition seven = plan::partition_rows(rows.counts(), 7, true);
  EXPECT_LT(seven.imbalance(), 0.05);
  EXPECT_GE(seven.split.at(0).segments.size(), 5U);
}

// Rows are like Twitch's channels: one has a fifth of the entries, the others are skewed.
TEST(PlanPartition, ARowOf20PercentLeavesNoImbalance) {
  Rows skewed = zipf(6100, 4000000, 0.5);
  skewed.count[1234] += std::lround(static_cast<double>(skewed.entries()) / 4);
  const Rows rows("Twitch-like", skewed.count);
  for (const int workers : {2, 4, 8, 16}) {
    SCOPED_TRACE(workers);
    const Partition split = plan::partition_rows(rows.counts(), workers, true);
    const Partition whole = plan::partition_rows(rows.counts(), workers, false);
    const Partition entries = plan::partition_entries(rows.counts(), workers);
    EXPECT_LE(split.imbalance(), plan::wanted_imbalance);
    EXPECT_EQ(split.split.size(), workers > 4 ? 1U : 0U);
    EXPECT_EQ(split.imbalance_unsplit(), whole.imbalance());
    EXPECT_EQ(entries.imbalance_unsplit(), whole.imbalance());
    // Whole, the row is 0.2 of the entries (and its own share of the skewed ones) on one of so many workers.
    EXPECT_NEAR(whole.imbalance(), std::max(0.0, 0.2 * workers - 1), 0.02);
    // Equally many entries each is the best there is; it cuts a row at every border.
    EXPECT_LE(static_cast<double>(split.largest_load()),
              (1 + plan::wanted_imbalance) * static_cast<double>(entries.largest_load()));
    EXPECT_LT(split.split.size(), entries.split.size());
  }
}

TEST(PlanPartition, WorkersGetOneRangeWhereRowsAllowIt) {
  const Rows uniform("uniform", std::vector<i64>(1000, 10));
  for (const int workers : {2, 3, 4, 7}) {
    const Partition d = plan::partition_rows(uniform.counts(), workers, true);
    for (const auto &ranges : d.owned)
      EXPECT_EQ(ranges.size(), 1U);
    EXPECT_TRUE(d.split.empty());
    EXPECT_LE(d.imbalance(), plan::wanted_imbalance);
  }
  // Worked by hand: loads 4, 3, 3, 2 on two workers.
  const Rows four("four", {4, 3, 3, 2});
  EXPECT_EQ(text_of(plan::partition_rows(four.counts(), 2, false)), "6: 0-1 3-4\n6: 1-3\n");
  EXPECT_EQ(text_of(plan::partition_entries(four.counts(), 2)), "6: 0-2\n6: 2-4\n1 of 0: 0-2 by 0 2-3 by 1\n");
}

TEST(PlanPartition, DividesAgainTheSame) {
  for (const Rows &rows : cases())
    for (const int workers : worker_counts)
      EXPECT_EQ(text_of(plan::partition_rows(rows.counts(), workers, true)),
                text_of(plan::partition_rows(rows.counts(), workers, true)));
}

/// The best that whole rows allow, by trying all.
i64 best_load(const std::vector<i64> &count, std::size_t at, std::vector<i64> &load) {
  if (at == count.size())
    return *std::max_element(load.begin(), load.end());
  i64 best = std::numeric_limits<i64>::max();
  for (i64 &l : load) {
    l += count[at];
    best = std::min(best, best_load(count, at + 1, load));
    l -= count[at];
  }
  return best;
}

TEST(PlanPartition, IsAtMostFourThirdsOfTheBest) {
  std::mt19937 engine(seed);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<i64> count;
    for (int i = 0; i < 9; ++i)
      count.push_back(1 + static_cast<i64>(engine() % 60));
    const Rows rows(fmt::format("trial {}", trial), count);
    for (const int workers : {2, 3}) {
      std::vector<i64> load(static_cast<std::size_t>(workers), 0);
      const i64 best = best_load(count, 0, load);
      // With 128 shards a worker, more than there are entries in two rows, the shards are the rows.
      EXPECT_LE(3 * plan::partition_rows(rows.counts(), workers, false).largest_load(), 4 * best)
          << rows.name << ", seed " << seed << ": " << fmt::format("{}", fmt::join(count, " "));
    }
  }
}

TEST(PlanPartition, EvenRowsNeedNoArrays) {
  const EvenRows even(10, 40);
  EXPECT_EQ(even.before(10), 40);
  EXPECT_EQ(even.row_of(11), 2);
  EXPECT_EQ(text_of(plan::partition_rows(even, 2, true)), "20: 0-5\n20: 5-10\n");
  // 2^40 rows, more than any array holds.
  const Partition large = plan::partition_rows(EvenRows(i64{1} << 40, i64{1} << 45), 4, true);
  EXPECT_EQ(large.imbalance(), 0);
  EXPECT_EQ(large.owned[3].at(0).end, i64{1} << 40);
  EXPECT_EQ(text_of(plan::partition_evenly(5, 7, 2)), "4: 0-3\n3: 3-5\n");
}

} // namespace
