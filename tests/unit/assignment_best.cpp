#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/assignment.hpp"

namespace {

using td::i64;

double benefit_of(const std::vector<double> &b, i64 cols, const std::vector<i64> &column_of) {
  double total = 0;
  for (std::size_t r = 0; r < column_of.size(); ++r)
    total += b[r * static_cast<std::size_t>(cols) + static_cast<std::size_t>(column_of[r])];
  return total;
}

/// The best of all ways of choosing columns, each tried.
double best_by_trial(const std::vector<double> &b, i64 rows, i64 cols) {
  std::vector<i64> sequence(static_cast<std::size_t>(cols));
  std::iota(sequence.begin(), sequence.end(), i64{0});
  double best = -1e300;
  do {
    best = std::max(best, benefit_of(b, cols, {sequence.begin(), sequence.begin() + rows}));
  } while (std::next_permutation(sequence.begin(), sequence.end()));
  return best;
}

TEST(Assignment, GreedyWouldLose) {
  // Greedy takes 10 and then 1; the best is 9 + 9.
  const std::vector<double> b{10, 9, 9, 1};
  EXPECT_EQ(td::best_assignment(b, 2, 2), (std::vector<i64>{1, 0}));
}

TEST(Assignment, AgreesWithTrialOfAllMatches) {
  constexpr unsigned seed = 20240611;
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> integer(-5, 5); // small range: many ties
  for (i64 rows = 1; rows <= 5; ++rows) {
    for (i64 cols = rows; cols <= 6; ++cols) {
      for (int trial = 0; trial < 20; ++trial) {
        std::vector<double> b(static_cast<std::size_t>(rows * cols));
        std::generate(b.begin(), b.end(), [&] { return integer(random); });
        const auto columns = td::best_assignment(b, rows, cols);
        auto distinct = columns;
        std::sort(distinct.begin(), distinct.end());
        EXPECT_EQ(std::unique(distinct.begin(), distinct.end()), distinct.end());
        // Sums of small whole numbers: equal to the last bit.
        EXPECT_EQ(benefit_of(b, cols, columns), best_by_trial(b, rows, cols))
            << "seed " << seed << ", " << rows << " x " << cols << ", trial " << trial;
      }
    }
  }
}

} // namespace
