#include "plan/sweep_tree.hpp"

#include <limits>
#include <numeric>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "kernels/cpu/backend.hpp"
#include "kernels/reference/backend.hpp"

namespace {

using namespace td;
using plan::Ask;
using plan::PartialProduct;
using plan::SweepTree;

const std::vector<i64> long_dims{200, 150, 12, 250};

SweepTree tree(const std::vector<i64> &dims, i64 rank, plan::GroupsSetting groups, std::vector<int> updated,
               double most_bytes, const kernels::Backend &backend) {
  return SweepTree({dims, ValueType::f64, rank, std::move(groups), std::move(updated), &backend, most_bytes});
}

SweepTree automatic(i64 rank, double most_bytes, std::vector<int> updated = {0, 1, 2, 3}) {
  return tree(long_dims, rank, {}, std::move(updated), most_bytes, *kernels::cpu::make_backend(2));
}

SweepTree asked(const char *groups, Ask ask, std::vector<int> updated, const std::vector<i64> &dims = long_dims) {
  return tree(dims, 4, {ask, groups}, std::move(updated), 0, *kernels::reference::make_backend());
}

TEST(PlanSweepTree, ProductsMergeWhatTheyKeep) {
  const PartialProduct inside(long_dims, 1, 2);
  EXPECT_EQ(inside.modes, (std::vector<int>{1, 2}));
  EXPECT_EQ(inside.merged_dims, (std::vector<i64>{200, 1800, 250}));
  EXPECT_EQ(inside.mode_at, (std::vector<int>{0, -1, 3}));
  EXPECT_EQ(inside.merged_mode, 1);
  EXPECT_FALSE(inside.wraps);
  EXPECT_EQ(inside.cells_of(1, 3).begin, 600);
  EXPECT_EQ(inside.cells_of(1, 3).end, 1200);
  const PartialProduct across(long_dims, 3, 3); // 3, 0, 1
  EXPECT_EQ(across.modes, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(across.merged_dims, (std::vector<i64>{30000, 12, 250}));
  EXPECT_EQ(across.mode_at, (std::vector<int>{-1, 2, -1}));
  EXPECT_TRUE(across.wraps);
  EXPECT_EQ(across.cells, 30000 * 250);
  EXPECT_EQ(across.cells_of(0, 2).end, 30000 * 125); // whole slabs
}

TEST(PlanSweepTree, WhatIsLeftOfProducts) {
  const PartialProduct three(long_dims, 0, 3);
  const PartialProduct first = three.without(0);
  EXPECT_EQ(first.modes, (std::vector<int>{1, 2}));
  EXPECT_EQ(first.dims, (std::vector<i64>{150, 12}));
  EXPECT_EQ(first.cells, 1800);
  const plan::SumOverMode over_first(three, 0);
  EXPECT_EQ(over_first.dims, (std::array<i64, 2>{200, 1800}));
  EXPECT_EQ(over_first.result, 1);
  const plan::SumOverMode over_last(three, 2);
  EXPECT_EQ(over_last.dims, (std::array<i64, 2>{30000, 12}));
  EXPECT_EQ(over_last.result, 0);
  EXPECT_EQ(three.without(2).cells, 30000);
  // A mode between others in memory stays: of 0, 2 and 3, of which 2 is updated first, nothing is left.
  const SweepTree sweeps = asked("multi-sweep", Ask::multi_sweep, {0, 1, 2, 3});
  std::string left;
  for (i64 step = 0; step < sweeps.period(); ++step)
    left += fmt::format(
        "{} ", sweeps.left_at(step) == nullptr ? "-" : fmt::to_string(fmt::join(sweeps.left_at(step)->modes, ",")));
  EXPECT_EQ(left, "- 1,2 1,2 - 0,1 0,1 - - - - 2,3 2,3 ");
  EXPECT_EQ(sweeps.most_cells(), 200 * 150 * 250 + 200 * 150);
  const SweepTree fixed = asked("multi-sweep", Ask::multi_sweep, {0, 1, 2}); // one product for all sweeps
  for (i64 step = 0; step < fixed.period(); ++step)
    EXPECT_EQ(fixed.left_at(step), nullptr);
}

TEST(PlanSweepTree, WhatIsAskedFor) {
  const SweepTree halves = asked("0,1|2,3", Ask::named, {0, 1, 2, 3});
  EXPECT_EQ(halves.text(), "0,1|2,3");
  EXPECT_EQ(halves.passes(), 2);
  EXPECT_EQ(asked("0,1|2,3", Ask::named, {0, 2, 1, 3}).passes(), 4);
  EXPECT_EQ(asked("0,1|2,3", Ask::named, {0, 1}).passes(), 0); // nothing outside changes
  EXPECT_EQ(asked("none", Ask::none, {0, 1, 2, 3}).passes(), 4);
  const SweepTree sweeps = asked("multi-sweep", Ask::multi_sweep, {0, 1, 2, 3});
  EXPECT_EQ(sweeps.text(), "0,1,2|0,1,3|0,2,3|1,2,3");
  EXPECT_EQ(sweeps.period(), 12);
  EXPECT_DOUBLE_EQ(sweeps.passes(), 4.0 / 3);
  EXPECT_DOUBLE_EQ(asked("multi-sweep", Ask::multi_sweep, {2, 0, 3, 1}).passes(), 4.0 / 3);
  EXPECT_DOUBLE_EQ(asked("multi-sweep", Ask::multi_sweep, {0, 1, 2}, {4, 5, 6}).passes(), 1.5);
  EXPECT_EQ(asked("multi-sweep", Ask::multi_sweep, {0, 1}, {4, 5}).text(), "0|1"); // order 2
}

TEST(PlanSweepTree, ProductsAreValid) {
  for (const std::vector<int> &updated :
       {std::vector<int>{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3}, {0, 1, 3}, {2}})
    for (const double most_bytes : {0.0, 5e6, 5e7, 1e9, 1e12})
      for (const i64 rank : {i64{1}, i64{10}, i64{100}}) {
        const SweepTree some = automatic(rank, most_bytes, updated);
        EXPECT_EQ(some.period() % static_cast<i64>(updated.size()), 0);
        EXPECT_LE(static_cast<double>(some.most_cells() * rank * 8), most_bytes);
        for (i64 step = 0; step < some.period(); ++step) {
          const int mode = updated[static_cast<std::size_t>(step) % updated.size()];
          EXPECT_TRUE(some.at(step) == nullptr || some.at(step)->keeps(mode)) << some.text();
        }
        EXPECT_LE(some.passes(), static_cast<double>(updated.size()));
      }
}

TEST(PlanSweepTree, HighOrdersAndExtremeSizesEnd) {
  const auto cpu = kernels::cpu::make_backend(1);
  std::vector<int> all(62);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> some(all.begin(), all.begin() + 14);
  EXPECT_LT(tree(std::vector<i64>(14, 2), 4, {}, some, 1e9, *cpu).passes(), 14); // products pay at order 14, too
  const SweepTree most = tree(std::vector<i64>(62, 2), 4, {}, all, 1e9, *cpu);
  EXPECT_EQ(most.period() % 62, 0);
  const i64 largest = std::numeric_limits<i64>::max();
  const SweepTree none = tree({largest, 1, 1, 1}, largest, {}, {0, 1, 2, 3}, 1e300, *cpu);
  EXPECT_EQ(none.period() % 4, 0);
}

TEST(PlanSweepTree, TheCheapestSequence) {
  EXPECT_EQ(automatic(10, 0).passes(), 4);                  // nothing may be kept
  EXPECT_EQ(automatic(10, 30000 * 10 * 8).passes(), 2);     // halves fit, and no product of three modes
  EXPECT_DOUBLE_EQ(automatic(10, 720e6 / 4).passes(), 1.5); // one that keeps 0, 1 and 3 is nearly the tensor again
  EXPECT_EQ(automatic(10, 720e6 / 4, {0, 1}).passes(), 0);  // of fixed modes it is computed once
  // Where every product is larger than the tensor, each mode is best off alone.
  EXPECT_EQ(tree({4, 5, 6}, 100, {}, {0, 1, 2}, 1e9, *kernels::cpu::make_backend(1)).passes(), 3);
}

} // namespace
