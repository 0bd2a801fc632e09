// Workers of one context: what they share, however the work is divided. Meant for ThreadSanitizer; run everywhere.
#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/planted.hpp"

namespace {

using namespace tdtest;

/// Index 7 of mode 0 holds 60 % of the entries.
Entries heavy_entries(Random &random) {
  Entries entries = random_entries(random, {20, 40, 30}, 4000, TD_F64);
  for (std::size_t k = 0; k < entries.indices[0].size(); ++k)
    if (k % 5 < 3)
      entries.indices[0][k] = 7;
  return entries;
}

class Workers : public testing::TestWithParam<int> {
protected:
  Context context(const char *threads = "0") const {
    return make_context("cpu:" + std::to_string(GetParam()), Options{{"threads", threads}});
  }
  void compare(const Context &context, const Tensor &x) {
    for (int mode = 0; mode < 3; ++mode)
      EXPECT_TRUE(
          within_bound(mttkrp(context, x, factors_, mode, TD_F64), oracle_mttkrp(entries_, factors_, mode), TD_F64))
          << "mode " << mode;
    for (const char *deterministic : {"0", "1"}) {
      const Options options{{"tol", "0"}, {"max_iters", "4"}, {"deterministic", deterministic}};
      const double one = report_f64(cpals(make_context("cpu:1"), x, 3, options, start_).report, "fit");
      const double all = report_f64(cpals(context, x, 3, options, start_).report, "fit");
      if (*deterministic == '1')
        EXPECT_EQ(one, all);
      else
        EXPECT_NEAR(one, all, 1e-10); // another order of sums, see properties/cpals.cpp
    }
  }

  Random random_{91};
  Entries entries_ = heavy_entries(random_);
  Factors factors_ = random_factors(random_, entries_.dims, 4, TD_F64);
  Ktensor start_ = make_ktensor(make_context("cpu:1"), random_factors(random_, entries_.dims, 3, TD_F64));
};

TEST_P(Workers, AgreeHoweverTheWorkIsDivided) {
  const Context all = context();
  for (const char *format : {"coo", "blco", "sorted"})
    for (const char *sharding : {"auto", "rows", "entries"}) {
      SCOPED_TRACE(testing::Message() << format << ", sharding " << sharding);
      compare(all, make_sparse(all, entries_, {TD_F64, TD_I64, 0},
                               Options{{"format", format}, {"groups", "none"}, {"sharding", sharding}}));
    }
  for (const char *groups : {"0,1|2", "1,2|0"}) {
    SCOPED_TRACE(testing::Message() << "groups " << groups);
    compare(all, make_sparse(all, entries_, {TD_F64, TD_I64, 0}, Options{{"format", "sorted"}, {"groups", groups}}));
  }
}

TEST_P(Workers, WithThreadsOfTheirOwn) {
  const Context all = context(std::to_string(2 * GetParam()).c_str());
  compare(all, make_tensor(all, "sorted", entries_));
}

INSTANTIATE_TEST_SUITE_P(All, Workers, testing::Values(1, 2, 3, 4, 7, 45)); // 45: more than any mode has rows

} // namespace
