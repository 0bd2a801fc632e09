// Rows that leave while the next ones are solved for change no bit of a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/devices.hpp"
#include "support/planted.hpp"
#include "support/problem.hpp"

namespace {

using namespace tdtest;

Options options(const char *overlap, const char *deterministic, const char *iterations = "6") {
  return Options{
      {"tol", "0"}, {"max_iters", iterations}, {"seed", "5"}, {"overlap", overlap}, {"deterministic", deterministic}};
}

/// A GPU has kernels for ranks up to 32, and others.
std::vector<int64_t> ranks() { return light() ? std::vector<int64_t>{37} : std::vector<int64_t>{3, 37}; }

class Overlap : public OnPlace {
protected:
  /// As much as two runs that differ in nothing: without `deterministic` a GPU may add in another order each time.
  /// Gives the last of the others.
  Fitted expect_same(const Tensor &x, int64_t rank, std::initializer_list<const char *> others,
                     const char *deterministic, const char *iterations) {
    const Fitted off = cpals(context(), x, rank, options("off", deterministic, iterations));
    Fitted on;
    for (const char *other : others) {
      SCOPED_TRACE(std::string("deterministic = ") + deterministic + ", overlap = " + other);
      on = cpals(context(), x, rank, options(other, deterministic, iterations));
      for (const char *key : {"fit", "residual"}) {
        const auto expected = report_series(off.report, key), got = report_series(on.report, key);
        if (got == expected)
          continue;
        EXPECT_TRUE(std::string(deterministic) == "0" && differs_from_run_to_run(x, rank, key, expected, iterations))
            << key << " is bitwise the same in each run, but for overlap";
        EXPECT_EQ(got.size(), expected.size()) << key;
        // Sums are rounded in another order, which few iterations do not magnify much.
        for (std::size_t k = 0; k < std::min(got.size(), expected.size()); ++k)
          EXPECT_NEAR(got[k], expected[k], 1e-10 * (1 + std::abs(expected[k]))) << key << " " << k;
      }
    }
    return on;
  }
  /// Whether a run without overlap comes to other bits than one before, as some of many do where sums are added in any
  /// order.
  bool differs_from_run_to_run(const Tensor &x, int64_t rank, const char *key, const std::vector<double> &before,
                               const char *iterations) {
    for (int run = 0; run < 20; ++run)
      if (report_series(cpals(context(), x, rank, options("off", "0", iterations)).report, key) != before)
        return true;
    return false;
  }
  void expect_same_bits(const Tensor &x, int64_t rank) {
    for (const char *deterministic : {"0", "1"})
      expect_same(x, rank, {"on", "auto"}, deterministic, "6");
  }
  Random random_{83};
};

TEST_P(Overlap, ChangesNoBit) {
  const Planted p = planted(random_, {41, 30, 22}, 3, 0.3, 0.1);
  const Tensor x = make_tensor(context(), format(), p.entries);
  for (const int64_t rank : ranks())
    expect_same_bits(x, rank);
}

// A mode of one row, of which all workers but one own nothing, and one of fewer rows than chunks.
TEST_P(Overlap, ChangesNoBitWhereRowsAreFew) {
  const Planted p = planted(random_, {1, 3, 29, 7}, 2, 0.5, 0.1);
  expect_same_bits(make_tensor(context(), format(), p.entries), 4);
}

// Rows so many that MTTKRP of the long mode itself goes chunk by chunk, with a row that two workers sum. Only GPUs have
// chunks, of 8 MiB at least: with 17 MB for each of two workers there are two. Elsewhere `overlap` must change nothing
// at any length. In tiles a GPU would add to the rows of short modes in an order that differs now and then, too seldom
// for one more run to show it.
TEST_P(Overlap, ChangesNoBitOfLongModes) {
  const int64_t rows = GetParam().device.rfind("cuda", 0) == 0 ? 540000 : 54000;
  constexpr int64_t rank = 8;
  if (format() != "sorted")
    GTEST_SKIP() << "copies of other formats do not stand by rows";
  Entries entries({rows, 900, 800});
  for (int64_t k = 0; k < rows; ++k)
    entries.add({k, random_.below(900), random_.below(800)}, 0.5 + random_.uniform());
  for (int64_t k = 0; k < rows / 9 * 10; ++k) // more than half of all
    entries.add({rows / 7, k % 900, k / 900}, 0.5 + random_.uniform());
  const Options in_one_tile{{"format", format()}, {"tiles", "none"}};
  const Tensor x = make_sparse(context(), entries, {}, in_one_tile);
  const Fitted on = expect_same(x, rank, {"auto"}, "0", "2");
  const Context reference = make_context("cpu");
  const Fitted one = cpals(reference, make_tensor(reference, format(), entries), rank, options("off", "0", "2"));
  const auto expected = report_series(one.report, "fit"), got = report_series(on.report, "fit");
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    EXPECT_NEAR(got[k], expected[k], 1e-9) << k;
}

// In order several GPUs give the bits of the first of them alone, whatever rows have no entries: those behind the last
// one that has some, too.
TEST_P(Overlap, InOrderGivesTheBitsOfOneGpu) {
  const std::string &devices = GetParam().device;
  const std::size_t first = devices.find(',');
  if (first == devices.npos)
    GTEST_SKIP() << devices << " is not several GPUs";
  const std::string one = devices.substr(0, first);
  const Context alone = make_context(one, context_options(one, "0"));
  Entries entries = planted(random_, {41, 30, 22}, 3, 0.3, 0.1).entries;
  const Entries dense = entries;
  entries.dims = {4100, 30, 500};
  for (const Entries &all : {dense, entries}) {
    if (format() == "dense" && all.dims[0] > 41)
      continue;
    for (const int64_t rank : ranks()) {
      SCOPED_TRACE(rank);
      const Fitted expected = cpals(alone, make_tensor(alone, format(), all), rank, options("auto", "1"));
      const Fitted came = cpals(context(), make_tensor(context(), format(), all), rank, options("auto", "1"));
      EXPECT_EQ(report_series(came.report, "fit"), report_series(expected.report, "fit"));
      EXPECT_EQ(weights_of(came.model), weights_of(expected.model));
      EXPECT_EQ(factors_of(came.model).a, factors_of(expected.model).a);
    }
  }
}

int32_t end_at_once(const td_report *, void *) { return 1; }

TEST_P(Overlap, ACancelledRunLeavesTheContextToTheNext) {
  const Planted p = planted(random_, {41, 30, 22}, 3, 0.3, 0.1);
  const Tensor x = make_tensor(context(), format(), p.entries);
  for (int round = 0; round < 3; ++round) {
    const Fitted ended = cpals(context(), x, 3, options("on", "0"), nullptr, end_at_once);
    EXPECT_EQ(report_series(ended.report, "fit").size(), 1U);
  }
  expect_same_bits(x, 3);
}

INSTANTIATE_TEST_SUITE_P(All, Overlap, testing::ValuesIn(places({"coo", "blco", "sorted", "dense"})), place_name);

} // namespace
