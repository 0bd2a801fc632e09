// A plan's bytes against what is really allocated, counted as td plan --check counts it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "allocated.hpp"
#include "support/problem.hpp"
#include "support/processes.hpp"

namespace {

using namespace tdtest;

std::int64_t bytes(const td_plan *plan, const char *key) {
  return get<std::int64_t>(td_plan_get_i64, plan, (std::string("host_bytes.") + key).c_str());
}

/// Different entries, of which the first some are there twice; with skew many of them lie in a few slices of each mode.
struct Entries {
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int32_t>> indices;
  std::vector<double> values;
  std::vector<float> narrow; // the same

  Entries(std::vector<std::int64_t> d, std::int64_t wanted, double skew, std::size_t twice)
      : dims(std::move(d)), indices(dims.size()) {
    std::uint64_t state = 12345;
    const auto uniform = [&] {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return static_cast<double>(state >> 11) * 0x1p-53;
    };
    std::set<std::vector<std::int32_t>> there;
    while (static_cast<std::int64_t>(values.size()) < wanted) {
      std::vector<std::int32_t> index;
      for (const std::int64_t dim : dims)
        index.push_back(static_cast<std::int32_t>(static_cast<double>(dim) * std::pow(uniform(), 1 / (1 - skew))));
      if (!there.insert(index).second)
        continue;
      for (std::size_t m = 0; m < dims.size(); ++m)
        indices[m].push_back(index[m]);
      values.push_back(1 + uniform());
    }
    for (std::size_t k = 0; k < twice; ++k) {
      for (auto &column : indices)
        column.push_back(column[k]);
      values.push_back(1);
    }
    narrow.assign(values.begin(), values.end());
  }
  Tensor build(td_context *context, td_type type, const td_options *options) const {
    std::vector<const void *> columns;
    for (const auto &column : indices)
      columns.push_back(column.data());
    return make<Tensor>(td_tensor_create, context, static_cast<std::int32_t>(dims.size()), dims.data(),
                        static_cast<std::int64_t>(values.size()), TD_I32, columns.data(), 0, type,
                        type == TD_F32 ? static_cast<const void *>(narrow.data()) : values.data(), TD_HOST, options);
  }
};

struct Case {
  const char *name;
  std::vector<std::int64_t> dims;
  std::int64_t entries;
  double skew;
  const char *format;
  const char *groups;
  const char *empty_rows;
  std::int64_t rank;
  const char *devices;
  std::size_t twice = 0;
  td_type type = TD_F64;
  const char *tiles = "auto";
  const char *accumulate = "auto";
  const char *init = "random";
};

/// Predicted / allocated, within 5 %.
void near(const char *what, std::int64_t predicted, std::int64_t allocated) {
  const double ratio = static_cast<double>(predicted) / static_cast<double>(allocated);
  std::printf("    %-9s predicted %12lld  allocated %12lld  %.3f\n", what, static_cast<long long>(predicted),
              static_cast<long long>(allocated), ratio);
  EXPECT_NEAR(ratio, 1, 0.05) << what << ": predicted " << predicted << ", allocated " << allocated;
}

class PlannedMemory : public testing::TestWithParam<Case> {};

TEST_P(PlannedMemory, is_what_is_allocated) {
  const Case &c = GetParam();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (c.name == std::string("nvecs_eigenvectors"))
    GTEST_SKIP() << "what Eigen takes is seen by a malloc of the program's own alone, which sanitizers do not allow";
#endif
  const Options options{{"format", c.format}, {"groups", c.groups}, {"empty_rows", c.empty_rows}, {"tiles", c.tiles},
                        {"max_iters", "2"},   {"tol", "0"},         {"accumulate", c.accumulate}, {"init", c.init}};
  // An iteration for a start is many small pieces of work: one thread, however busy the machine is.
  const std::string threads = c.init == std::string("nvecs") ? "1" : "0";
  const Context context = make_context(c.devices, Options{{"threads", threads}});
  const Entries entries(c.dims, c.entries, c.skew, c.twice);
  { entries.build(context, c.type, options); } // what is allocated once a process is there
  const Plan shape = make<Plan>(td_plan_create, context, static_cast<std::int32_t>(c.dims.size()), c.dims.data(),
                                c.entries, c.type, c.rank, options);
  // On a busy machine one thread may do another's part of a region, and then takes less: the most of a few runs counts.
  constexpr int tries = 5;
  Tensor x;
  std::int64_t built = 0, solved = 0;
  Plan plan;
  std::int64_t to_build = 0;
  for (int k = 0; k == 0 || (k<tries &&static_cast<double>(to_build)> 1.02 * static_cast<double>(built)); ++k) {
    x = Tensor();
    const cli::Allocated building;
    x = entries.build(context, c.type, options);
    built = std::max(built, building.most());
    plan = make<Plan>(td_plan_create_for_tensor, context, x, c.rank, options);
    to_build = bytes(plan, "tensor") + bytes(plan, "building");
  }
  const auto stored = get<std::int64_t>(td_tensor_get_i64, x, "bytes");
  EXPECT_EQ(bytes(plan, "tensor"), stored);
  near("building", to_build, built);
  if (c.skew == 0 && c.twice == 0) { // a shape says nothing of clusters
    near("shape", bytes(shape, "tensor"), stored);
    near("building", bytes(shape, "tensor") + bytes(shape, "building"), built);
  }
  for (int k = 0; k<tries &&static_cast<double>(bytes(plan, "solver"))> 1.02 * static_cast<double>(solved); ++k) {
    const cli::Allocated solving;
    Ktensor model;
    check(td_cpals(context, x, c.rank, nullptr, options, nullptr, nullptr, model.out(), nullptr));
    solved = std::max(solved, solving.most());
  }
  near("solver", bytes(plan, "solver"), solved);

  // What a run is refused by is what the plan says.
  const auto run_within = [&](std::int64_t limit) {
    const Context narrow =
        make_context(c.devices, Options{{"memory_limit", std::to_string(limit)}, {"threads", threads}});
    return td_cpals(narrow, x, c.rank, nullptr, options, nullptr, nullptr, Ktensor().out(), nullptr);
  };
  EXPECT_EQ(run_within(stored + bytes(plan, "solver") - 1), TD_ERR_HOST_MEMORY);
  EXPECT_EQ(run_within(stored + bytes(plan, "solver")), TD_OK) << last_error();
}

/// Sanitizers, whose runs are light, look at code that those of one kind share.
std::vector<Case> cases() {
  std::vector<Case> all{
      Case{"coo", {30000, 4000, 5000}, 60000, 0, "coo", "auto", "auto", 16, "cpu"},
      Case{"blco", {30000, 4000, 5000}, 60000, 0, "blco", "auto", "auto", 33, "cpu"},
      Case{"blco_blocks", {1 << 18, 1 << 18, 1 << 18, 1 << 18}, 60000, 0, "blco", "auto", "keep", 2, "cpu"},
      Case{"coo_twice", {30000, 4000, 5000}, 30000, 0, "coo", "auto", "auto", 16, "cpu", 30000},
      Case{"blco_twice", {30000, 4000, 5000}, 30000, 0, "blco", "auto", "auto", 16, "cpu", 30000},
      Case{"blco_some_twice_f32", {30000, 4000, 5000}, 60000, 0, "blco", "auto", "auto", 16, "cpu", 600, TD_F32},
      Case{"sorted_twice", {30000, 4000, 5000}, 30000, 0, "sorted", "none", "auto", 16, "cpu", 30000, TD_F32},
      Case{"sorted_forced_tiles", {3000, 4000, 500}, 60000, 0, "sorted", "none", "auto", 16, "cpu", 0, TD_F64, "400"},
      Case{"sorted", {30000, 4000, 5000}, 60000, 0, "sorted", "none", "auto", 16, "cpu"},
      Case{"coo_f64_sums", {30000, 4000, 5000}, 60000, 0, "coo", "auto", "auto", 16, "cpu", 0, TD_F32, "auto", "f64"},
      Case{"sorted_f64_sums",
           {30000, 4000, 5000},
           60000,
           0,
           "sorted",
           "auto",
           "auto",
           16,
           "cpu",
           0,
           TD_F32,
           "auto",
           "f64"},
      Case{"sorted_skewed", {30000, 4000, 5000}, 60000, 0.5, "sorted", "none", "auto", 10, "cpu:2"},
      Case{"sorted_tiles", {24, 11400, 17170, 183}, 200000, 0, "sorted", "none", "auto", 32, "cpu"},
      // 24 columns of a subspace: whole registers of any kind.
      Case{
          "nvecs_coo", {600, 400, 500}, 60000, 0, "coo", "auto", "keep", 14, "cpu", 0, TD_F64, "auto", "auto", "nvecs"},
      Case{"nvecs_blco",
           {300, 400, 500},
           60000,
           0,
           "blco",
           "auto",
           "keep",
           40,
           "cpu",
           0,
           TD_F32,
           "auto",
           "auto",
           "nvecs"},
      Case{"nvecs_sorted",
           {200, 300, 400},
           200000,
           0,
           "sorted",
           "none",
           "keep",
           8,
           "cpu",
           0,
           TD_F64,
           "auto",
           "auto",
           "nvecs"},
      Case{"nvecs_eigenvectors",
           {512, 400, 300},
           20000,
           0,
           "sorted",
           "none",
           "keep",
           8,
           "cpu",
           0,
           TD_F64,
           "auto",
           "auto",
           "nvecs"},
      Case{"groups", {24, 11400, 17170, 183}, 200000, 0.5, "sorted", "0,1|2|3", "auto", 16, "cpu"},
      Case{"groups_of_its_own", {24, 11400, 17170, 183}, 200000, 0.5, "sorted", "auto", "auto", 16, "cpu"},
      Case{"empty_rows", {100000, 70000, 200000}, 60000, 0, "sorted", "auto", "auto", 8, "cpu"},
      Case{"empty_rows_of_skewed", {100000, 70000, 200000}, 60000, 0.5, "sorted", "auto", "drop", 8, "cpu"}};
  const std::set<std::string> few{"coo_f64_sums",  "blco_blocks", "blco_some_twice_f32", "sorted_twice",
                                  "sorted_skewed", "nvecs_coo",   "groups_of_its_own",   "empty_rows"};
  if (light())
    std::erase_if(all, [&](const Case &c) { return few.count(c.name) == 0; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(sparse, PlannedMemory, testing::ValuesIn(cases()),
                         [](const auto &info) { return std::string(info.param.name); });

/// The runs of a shared context: a dense tensor's, and the one for which each process makes a copy of all of a tensor.
TEST(PlannedMemory, of_a_context_that_processes_share) {
  const std::vector<std::int64_t> dims{60, 50, 70}, none{0, 0, 0};
  const std::vector<double> cells(60 * 50 * 70, 1.5);
  const Entries entries({3000, 4000, 500}, 60000, 0, 0);
  const Options stored{{"format", "sorted"}, {"groups", "none"}, {"empty_rows", "keep"}};
  const Options few{{"max_iters", "2"}, {"tol", "0"}}, same_bits{{"max_iters", "2"}, {"deterministic", "1"}};
  Processes one(1);
  one.run("cpu", [&](int, td_context *context) {
    const auto expect_planned = [&](const td_tensor *x, std::int64_t rank, const Options &run) {
      const Plan plan = make<Plan>(td_plan_create_for_tensor, context, x, rank, static_cast<const td_options *>(run));
      cpals(context, x, rank, run); // what is allocated once
      const cli::Allocated solving;
      cpals(context, x, rank, run);
      const std::int64_t copy = bytes(plan, "tensor") - get<std::int64_t>(td_tensor_get_i64, x, "bytes");
      near("solver", copy + std::max(bytes(plan, "solver"), copy > 0 ? bytes(plan, "building") : 0), solving.most());
    };
    const auto make_dense = [&] {
      return make<Tensor>(td_tensor_create_dense_block, context, 3, dims.data(), none.data(), dims.data(),
                          static_cast<const std::int64_t *>(nullptr), TD_F64, cells.data(), TD_HOST,
                          static_cast<const td_options *>(nullptr));
    };
    const Tensor dense = make_dense();
    expect_planned(dense, 40, few);
    expect_planned(dense, 40, same_bits);
    const Tensor sparse = entries.build(context, TD_F64, stored);
    expect_planned(sparse, 30, same_bits);
  });
}

/// A borrowed field of 17 MB, with gaps, which allocates nothing of its size: the sums of its blocks and little more.
TEST(PlannedMemory, borrows_a_field_without_a_copy) {
  const std::vector<std::int64_t> dims{120, 130, 140}, strides{1, 122, 122 * 132};
  std::vector<double> field(static_cast<std::size_t>(122 * 132 * 140), 0.0);
  std::uint64_t state = 1;
  for (double &value : field)
    value = static_cast<double>((state = state * 6364136223846793005U + 1442695040888963407U) >> 11) * 0x1p-53;
  const auto size = static_cast<std::int64_t>(field.size() * sizeof(double));
  const Options borrow{{"borrow", "1"}};
  const Options run{{"max_iters", "2"}, {"tol", "0"}};
  for (const char *devices : {"cpu", "cpu:2"}) {
    const Context context = make_context(devices);
    const auto make_tensor = [&] {
      return make<Tensor>(td_tensor_create_dense, context, 3, dims.data(), strides.data(), TD_F64, field.data(),
                          TD_HOST, borrow);
    };
    { make_tensor(); } // what is allocated once a process is there
    const cli::Allocated building;
    const Tensor x = make_tensor();
    EXPECT_LT(building.most(), size / 25);
    const Plan plan = make<Plan>(td_plan_create_for_tensor, context, x, 16, run);
    const cli::Allocated solving;
    Ktensor model;
    check(td_cpals(context, x, 16, nullptr, run, nullptr, nullptr, model.out(), nullptr));
    EXPECT_LT(solving.most(), size / 2);
    // A thread that does another's part takes less.
    EXPECT_LE(static_cast<double>(solving.most()), 1.05 * static_cast<double>(bytes(plan, "solver")));
  }
}

} // namespace
