// Every path that an option can force, against the definition; and a plan that says so, naming the option.
#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/oracle.hpp"

namespace {

using namespace tdtest;

struct Case {
  const char *name;
  std::vector<std::pair<const char *, std::string>> options;
  const char *decision; // of the plan
  const char *choice;
};

std::string plan_str(const td_plan *plan, const std::string &key) { return text(td_plan_get_str, plan, key.c_str()); }

const std::vector<Case> &cases() {
  static const std::vector<Case> all{
      {"coo_private", {{"format", "coo"}, {"conflicts", "private"}}, "conflicts", "private"},
      {"coo_atomic", {{"format", "coo"}, {"conflicts", "atomic"}}, "conflicts", "atomic"},
      {"coo_owner", {{"format", "coo"}, {"conflicts", "owner"}}, "conflicts", "owner"},
      {"blco_private", {{"format", "blco"}, {"conflicts", "private"}}, "conflicts", "private"},
      {"blco_atomic", {{"format", "blco"}, {"conflicts", "atomic"}}, "conflicts", "atomic"},
      {"blco_owner", {{"format", "blco"}, {"conflicts", "owner"}}, "conflicts", "owner"},
      {"blco_owner_by_rows", {{"format", "blco"}, {"conflicts", "owner"}, {"sharding", "rows"}}, "conflicts", "owner"},
      {"sorted_owner", {{"format", "sorted"}, {"conflicts", "owner"}}, "conflicts", "owner"},
      {"cells_private", {{"format", "sorted"}, {"groups", "0,1|2"}, {"conflicts", "private"}}, "conflicts", "private"},
      {"cells_atomic", {{"format", "sorted"}, {"groups", "0|1,2"}, {"conflicts", "atomic"}}, "conflicts", "atomic"},
      {"cells_owner", {{"format", "sorted"}, {"groups", "2,0|1"}, {"conflicts", "owner"}}, "conflicts", "owner"},
      {"no_tiles", {{"format", "sorted"}, {"tiles", "none"}, {"groups", "none"}}, "tiles", "none"},
      // Dims 60, 37 and 50, cut in half until a tile needs so many rows: of 37 + 50 rows 32 + 32 and the rest, ...
      {"tiles", {{"format", "sorted"}, {"tiles", "64"}, {"groups", "none"}}, "tiles", "4|4|4"},
      {"tiles_of_a_row", {{"format", "sorted"}, {"tiles", "2"}, {"groups", "none"}}, "tiles", "1850|3000|2220"},
      {"tiles_by_owner",
       {{"format", "sorted"}, {"tiles", "64"}, {"groups", "none"}, {"conflicts", "owner"}},
       "tiles",
       "4|4|4"},
      {"tiles_of_cells", {{"format", "sorted"}, {"tiles", "32"}, {"groups", "0|1,2"}}, "tiles", ""}};
  return all;
}

struct Place {
  Case forced;
  std::string device;
  td_type type;
};

std::vector<Place> places() {
  std::vector<Place> all;
  for (const Case &c : cases())
    for (const std::string &device : device_strings())
      for (const td_type type : {TD_F32, TD_F64})
        all.push_back({c, device, type});
  return all;
}

class Forced : public testing::TestWithParam<Place> {};

TEST_P(Forced, IsReachedAndRight) {
  const auto &[forced, device, type] = GetParam();
  const auto found = context_if_there(device, "3");
  if (!found)
    GTEST_SKIP() << device << ": " << last_error();
  const Context &context = *found;
  Random random(7);
  const Entries entries = random_entries(random, {60, 37, 50}, 20000, type); // enough for three threads' shares
  Options options;
  for (const auto &[name, value] : forced.options)
    options.set(name, value);
  const std::string name = forced.name;
  if (device.rfind("cuda", 0) == 0 && (name == "coo_private" || name == "cells_private")) {
    try {
      make_sparse(context, entries, {type, TD_I32, 0}, options);
      FAIL() << "a GPU has no private rows for coordinates";
    } catch (const Error &failure) {
      EXPECT_EQ(failure.status(), TD_ERR_UNSUPPORTED) << failure.what();
    }
    return;
  }
  const Tensor x = make_sparse(context, entries, {type, TD_I32, 0}, options);

  const Plan of_tensor = make<Plan>(td_plan_create_for_tensor, context, x, 8, nullptr);
  const Plan of_shape = make<Plan>(td_plan_create, context, 3, entries.dims.data(), entries.nnz(), type, 8, options);
  for (const td_plan *plan : {of_tensor.get(), of_shape.get()}) {
    if (forced.choice[0] != '\0') {
      EXPECT_EQ(plan_str(plan, forced.decision), forced.choice);
    }
    EXPECT_EQ(plan_str(plan, std::string(forced.decision) + ".why"),
              "asked for by option '" + std::string(forced.decision) + "'");
  }

  for (const std::int64_t rank : {3, 16}) {
    const Factors factors = random_factors(random, entries.dims, rank, type);
    for (int mode = 0; mode < 3; ++mode)
      EXPECT_TRUE(within_bound(mttkrp(context, x, factors, mode, type), oracle_mttkrp(entries, factors, mode), type))
          << "rank " << rank << ", mode " << mode;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Forced, testing::ValuesIn(places()), [](const auto &info) {
  return info.param.forced.name + std::string("_") + name_part(info.param.device) +
         (info.param.type == TD_F32 ? "_f32" : "_f64");
});

} // namespace
