#include "plan/groups.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace {

using namespace td;
using plan::Ask;
using plan::Group;
using plan::Groups;
using plan::GroupsSetting;

std::string refusal(const std::string &option, std::vector<i64> dims) {
  try {
    const Groups groups(dims, ValueType::f64, {Ask::named, option});
  } catch (const Error &e) {
    EXPECT_EQ(e.status(), Status::option_range);
    return e.what();
  }
  return "nothing was thrown";
}

TEST(PlanGroups, ReadsPartitions) {
  const std::vector<i64> dims{2, 3, 4, 5};
  const Groups groups(dims, ValueType::f64, {Ask::named, " 1 , 2|3|0"});
  ASSERT_EQ(groups.count(), 3);
  EXPECT_EQ(groups.modes(0), (Group{1, 2}));
  EXPECT_EQ(groups.text(), "1,2|3|0");
  EXPECT_EQ(groups.group_of(0), 2);
  EXPECT_EQ(groups.group_of(2), 0);
  EXPECT_EQ(groups.cell_count(0), 12);
  EXPECT_TRUE(groups.shared(0, 1000000)); // since it was asked for
  EXPECT_FALSE(groups.shared(1, 1));      // a mode alone
}

TEST(PlanGroups, RefusesWhatIsNoPartition) {
  const std::vector<i64> dims{2, 3, 4};
  const std::string expected = "; expected auto, none or a partition of the modes 0 .. 2 as in \"0,1|2\"";
  EXPECT_EQ(refusal("0,1", dims), "option 'groups' = \"0,1\": mode 2 is missing" + expected);
  EXPECT_EQ(refusal("0,2|1", dims), "option 'groups' = \"0,2|1\": mode 2 does not follow mode 0" + expected);
  EXPECT_EQ(refusal("0,1|1,2", dims), "option 'groups' = \"0,1|1,2\": mode 1 is there twice" + expected);
  EXPECT_EQ(refusal("0,1|2|", dims), "option 'groups' = \"0,1|2|\": a group without modes" + expected);
  EXPECT_EQ(refusal("", dims), "option 'groups' = \"\": a group without modes" + expected);
  EXPECT_EQ(refusal("0,1,2", dims),
            "option 'groups' = \"0,1,2\": one group, whose partial product would be the tensor again for each column" +
                expected);
  EXPECT_EQ(refusal("0,1|3", dims), "option 'groups' = \"0,1|3\": '3' is not a mode; expected numbers in 0 .. 2");
  EXPECT_EQ(refusal("automatic", dims),
            "option 'groups' = \"automatic\": 'automatic' is not a mode; expected numbers in 0 .. 2");
  EXPECT_EQ(refusal("2,0|1", dims),
            "option 'groups' = \"2,0|1\": 2,0 goes on from the last mode to the first, whose elements are not "
            "neighbours in a dense tensor; expected ascending modes");
}

TEST(PlanGroups, AutoTakesTheHalvesWithFewestCells) {
  const auto chosen = [](std::vector<i64> dims) { return Groups(dims, ValueType::f64, GroupsSetting{}).text(); };
  EXPECT_EQ(chosen({200, 150, 12, 250}), "0,1|2,3"); // 30000 + 3000; else 200 + 450000 or 360000 + 250
  EXPECT_EQ(chosen({5, 201, 61}), "0,1|2");          // 1005 + 61, else 5 + 12261
  EXPECT_EQ(chosen({100, 3, 4}), "0|1,2");
  EXPECT_EQ(chosen({5, 6}), "0|1");
  const std::vector<i64> dims{5, 201, 61};
  EXPECT_EQ(Groups(dims, ValueType::f64, {Ask::none, "none"}).text(), "0|1|2");
}

TEST(PlanGroups, AutoSharesWhereItTakesAQuarterOfTheTensorAtMost) {
  // A cell of modes 0 and 1 stands for 40 elements, 320 bytes; its row, value and three coordinates take
  // 8 R + 8 + 24 bytes, which is 80 at R = 6. In single precision 160 bytes and 4 R + 4 + 24, which is 40 at R = 3.
  const std::vector<i64> dims{10, 10, 40};
  const Groups doubles(dims, ValueType::f64, {Ask::automatic, "auto"});
  EXPECT_TRUE(doubles.shared(0, 6));
  EXPECT_FALSE(doubles.shared(0, 7));
  EXPECT_FALSE(doubles.shared(1, 1));
  const Groups singles(dims, ValueType::f32, {Ask::automatic, "auto"});
  EXPECT_TRUE(singles.shared(0, 3));
  EXPECT_FALSE(singles.shared(0, 4));
}

TEST(PlanGroups, MergesModes) {
  const std::vector<i64> dims{2, 3, 4, 5};
  const Groups groups(dims, ValueType::f32, {Ask::named, "0|1,2|3"});
  const auto merged = groups.merged_dims(1);
  EXPECT_EQ(std::vector<i64>(merged.begin(), merged.end()), (std::vector<i64>{2, 12, 5}));
  EXPECT_EQ(groups.merged_mode(1), 1);
  const auto mode_at = groups.mode_at(1);
  EXPECT_EQ(std::vector<int>(mode_at.begin(), mode_at.end()), (std::vector<int>{0, -1, 3}));
}

TEST(PlanGroups, CellsAreTheSameForEveryThread) {
  const std::vector<i64> dims{2, 3, 2};
  const Groups groups(dims, ValueType::f32, {Ask::named, "0,1|2"});
  const formats::Coo *seen[4] = {};
  {
    std::vector<std::jthread> threads;
    for (auto &to : seen)
      threads.emplace_back([&groups, &to] { to = &groups.cells(0); });
  }
  for (const auto *other : seen)
    EXPECT_EQ(other, seen[0]);
  const kernels::CooView cells = seen[0]->view();
  EXPECT_EQ(std::vector<i64>(cells.dims.begin(), cells.dims.end()), (std::vector<i64>{2, 3, 6}));
  ASSERT_EQ(cells.nnz, 6);
  for (i64 k = 0; k < 6; ++k) {
    EXPECT_EQ(cells.indices[0][k], k % 2);
    EXPECT_EQ(cells.indices[1][k], k / 2);
    EXPECT_EQ(cells.indices[2][k], k);
    EXPECT_EQ(static_cast<const float *>(cells.values)[k], 1.0F);
  }
}

} // namespace
