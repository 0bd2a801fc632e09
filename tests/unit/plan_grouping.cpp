// Groups are chosen by what the CPU's kernels are predicted to take.
#include "plan/grouping.hpp"

#include <cstdio>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/options.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu_model.hpp"
#include "plan/layout.hpp"
#include "plan/sweep_prediction.hpp"

namespace {

using namespace td;

struct Measured {
  const char *name;
  std::vector<i64> dims;
  i64 nnz;
  const char *groups;
};

/// Tensors of bench/results, each with the groups that it was measured with.
const std::vector<Measured> &measured() {
  static const std::vector<Measured> all = {
      {"uber", {183, 24, 1140, 1717}, 3309490, "0,1|2|3"},
      {"nips", {2482, 2862, 14036, 17}, 3101609, "1|2|3,0"},
      {"chicago", {6186, 24, 77, 32}, 5330673, "0|1,2,3"},
      {"vast", {165427, 11374, 2}, 26021854, "0|1,2"},
      {"nell2", {12092, 9184, 28818}, 76879419, "0|1|2"},
      {"nell2, scale 0.26", {12092, 9184, 28818}, 19988648, "0|1|2"},
      {"delicious, scale 0.2", {532924, 17262471, 2480308, 1443}, 28025236, "0|1|2|3"},
  };
  return all;
}

plan::Layout layout_with(const Measured &x, const char *groups) {
  Options options;
  options.set_text("format", "sorted");
  options.set_text("groups", groups);
  return plan::layout_of(x.dims, x.nnz, ValueType::f64, {plan::TensorSettings(options), false, 1, {}});
}

TEST(PlanGrouping, MeasuredTensorsKeepTheirGroups) {
  for (const Measured &x : measured())
    EXPECT_EQ(layout_with(x, "auto").groups, x.groups) << x.name;
}

// The saving that groups are chosen for is the one that the backend predicts of the same copies and cells, on one core
// at its nominal rates. Of a copy of merged modes the choice takes segments to be spread over the cells that hold
// entries, a layout over all that there are: that is less than a hundredth of a sweep.
TEST(PlanGrouping, SavesWhatTheBackendPredicts) {
  const kernels::cpu::CpuBackend core(1);
  for (const Measured &x : measured()) {
    SCOPED_TRACE(x.name);
    const auto seconds = [&](const plan::Layout &layout) {
      return plan::predict_sweep(layout, {core,
                                          16,
                                          1,
                                          kernels::Conflicts::automatic,
                                          plan::ShardingRule::automatic,
                                          false,
                                          {},
                                          core.nominal_rates()})
          .seconds_mttkrp;
    };
    const plan::Layout chosen = layout_with(x, "auto");
    const double saved = 100 * (1 - seconds(chosen) / seconds(layout_with(x, "none")));
    if (chosen.partition.size() == x.dims.size()) {
      EXPECT_EQ(saved, 0);
      continue;
    }
    double said = 0;
    ASSERT_EQ(std::sscanf(chosen.why.groups.c_str(), "expected to save %lf %%", &said), 1) << chosen.why.groups;
    EXPECT_NEAR(saved, said, 1.5);
  }
}

// Tiles go by two bounds, on the entries of a segment and of a factor's row. Other tiles of these tensors, with twice
// or half as many rows and so on, or none, are predicted to take at most a sixth less.
TEST(PlanGrouping, TilesOfMeasuredTensorsAreNearTheBestPrediction) {
  for (const Measured &x : measured()) {
    if (x.groups == std::string_view("0|1|2|3"))
      continue; // the factors of delicious are far in any tiles that its few entries allow
    const formats::EntryShape shape(x.dims, x.nnz, ValueType::f64);
    for (int m = 0; m < static_cast<int>(x.dims.size()); ++m) {
      const auto seconds = [&](const formats::TileRule &rule) {
        const auto copy = formats::copy_size(shape, std::vector<int>{m}, rule, 1);
        return kernels::cpu::seconds_of(
            kernels::cpu::walk_over(formats::view_of(copy, x.nnz, ValueType::f64), ValueType::f64), 32, 32,
            ValueType::f64, kernels::cpu::core_rates);
      };
      const double chosen = seconds({});
      double best = seconds({formats::TileRule::Kind::none});
      for (i64 rows = kernels::cpu::first_tile_rows; rows < 1000000; rows *= 2)
        try {
          best = std::min(best, seconds({formats::TileRule::Kind::rows, rows}));
        } catch (const Error &e) {
          EXPECT_EQ(e.status(), Status::unsupported); // more segments than may be
        }
      EXPECT_LE(chosen, 1.2 * best) << x.name << ", mode " << m;
    }
  }
}

} // namespace
