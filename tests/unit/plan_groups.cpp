#include "plan/groups.hpp"

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
    const Groups groups(dims, {Ask::named, option});
  } catch (const Error &e) {
    EXPECT_EQ(e.status(), Status::option_range);
    return e.what();
  }
  return "nothing was thrown";
}

TEST(PlanGroups, ReadsPartitions) {
  const std::vector<i64> dims{2, 3, 4, 5};
  const Groups groups(dims, {Ask::named, " 1 , 2|3|0"});
  ASSERT_EQ(groups.count(), 3);
  EXPECT_EQ(groups.modes(0), (Group{1, 2}));
  EXPECT_EQ(groups.text(), "1,2|3|0");
  EXPECT_EQ(groups.group_of(0), 2);
  EXPECT_EQ(groups.group_of(2), 0);
  EXPECT_EQ(groups.cell_count(0), 12);
  EXPECT_TRUE(groups.shared(0));
  EXPECT_FALSE(groups.shared(1)); // a mode alone
}

TEST(PlanGroups, RefusesWhatIsNoPartition) {
  const std::vector<i64> dims{2, 3, 4};
  const std::string expected = "; expected auto, none, multi-sweep or a partition of the modes 0 .. 2 as in \"0,1|2\"";
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

TEST(PlanGroups, WhatAutoSharesIsUpToSweeps) {
  const std::vector<i64> dims{200, 150, 12, 250};
  const Groups automatic(dims, GroupsSetting{});
  EXPECT_EQ(automatic.text(), "auto");
  EXPECT_EQ(automatic.count(), 4);
  EXPECT_EQ(Groups(dims, {Ask::multi_sweep, "multi-sweep"}).text(), "multi-sweep");
  EXPECT_EQ(Groups(dims, {Ask::none, "none"}).text(), "0|1|2|3");
}

TEST(PlanGroups, MergesModes) {
  const std::vector<i64> dims{2, 3, 4, 5};
  const Groups groups(dims, {Ask::named, "0|1,2|3"});
  const auto merged = groups.merged_dims(1);
  EXPECT_EQ(std::vector<i64>(merged.begin(), merged.end()), (std::vector<i64>{2, 12, 5}));
  EXPECT_EQ(groups.merged_mode(1), 1);
  const auto mode_at = groups.mode_at(1);
  EXPECT_EQ(std::vector<int>(mode_at.begin(), mode_at.end()), (std::vector<int>{0, -1, 3}));
}

} // namespace
