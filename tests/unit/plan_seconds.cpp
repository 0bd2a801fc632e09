// Seconds of a plan: of a tensor that does not fit its device, and of each precision.
#include "tensor/planned.hpp"

#include <array>
#include <set>

#include <fmt/ranges.h>

#include "plan/sweep_prediction.hpp"
#include "unit/small_device.hpp"
#include "unit/solver_make.hpp"

namespace td::test {
namespace {

/// A device whose kernels take no time to speak of.
class FastDevice : public kernels::reference::ReferenceBackend {
public:
  /// `bytes` for copies, and `free` for what is allocated.
  explicit FastDevice(i64 bytes, i64 free = i64{1} << 30) : memory_(bytes), free_(free) {}
  void *allocate(i64 bytes, const char *what) override {
    ADD_FAILURE() << "a plan asks copies for " << bytes << " bytes";
    return ReferenceBackend::allocate(bytes, what);
  }
  void *try_allocate(i64 bytes, const char *what) override {
    return bytes > free_ ? nullptr : ReferenceBackend::allocate(bytes, what);
  }
  const void *memory() const noexcept override { return this; }
  i64 room() const override { return memory_.room(); }
  void fetch(int buffer, void *to, const void *from, i64 bytes) override { memory_.fetch(buffer, to, from, bytes); }
  void await(int buffer) noexcept override { memory_.await(buffer); }
  void done(int buffer) override { memory_.done(buffer); }
  kernels::Prediction predict_mttkrp(const kernels::TensorView &, const kernels::MttkrpArgs &,
                                     const kernels::Rates &) const override {
    return {"", "", 0, kernel_seconds};
  }
  static constexpr double kernel_seconds = 1e-12;

private:
  SmallDevice memory_;
  i64 free_;
};

/// One whose MTTKRP takes a second.
class SlowDevice final : public FastDevice {
public:
  using FastDevice::FastDevice;
  kernels::Prediction predict_mttkrp(const kernels::TensorView &, const kernels::MttkrpArgs &,
                                     const kernels::Rates &) const override {
    return {"", "", 0, 1};
  }
  kernels::Rates rates() const override { return {reading_rate}; }
  static constexpr double reading_rate = 4e12;
};

TEST(PlanSeconds, WhatIsStreamedTakesItsTime) {
  const std::vector<double> values(40 * 30 * 20, 1.0);
  for (const char *format : {"sorted", "blco", "coo"}) {
    SCOPED_TRACE(format);
    const auto x = sparse_tensor<double>({40, 30, 20}, values, format, "none");
    plan::PlanRequest request;
    request.rank = 4;
    request.backends = {std::make_shared<FastDevice>(i64{1} << 30)};
    const plan::Plan whole = tensor::plan_of(*x, request);
    EXPECT_EQ(whole.device.streamed, 0);
    EXPECT_NEAR(whole.seconds_mttkrp, 3 * FastDevice::kernel_seconds, 1e-15);

    request.backends = {std::make_shared<FastDevice>(100000)};
    const plan::Plan some = tensor::plan_of(*x, request);
    ASSERT_GT(some.device.streamed, 0);
    double sum = 0;
    for (const plan::ModePlan &mode : some.modes) {
      // Each mode's copy passes, or the one copy in each mode. No host's memory gives a terabyte a second.
      const double bytes = static_cast<double>(some.device.streamed) / (std::string_view(format) == "sorted" ? 3 : 1);
      EXPECT_GT(mode.seconds, bytes / 1e12);
      sum += mode.seconds;
    }
    EXPECT_DOUBLE_EQ(some.seconds_mttkrp, sum);
  }
}

constexpr double starts = 3 * 40e-6; // of the exchanges of three modes

// Sorted copies leave nothing to merge: a GPU receives the factor rows that the others own, and nothing else.
TEST(PlanSeconds, GpusThatAreNotThereExchangeAtARateThatIsSaid) {
  const std::vector<double> values(40 * 30 * 20, 1.0);
  const auto x = sparse_tensor<double>({40, 30, 20}, values, "sorted", "none");
  plan::PlanRequest request;
  request.rank = 4;
  request.backends.assign(8, std::make_shared<FastDevice>(i64{1} << 30));
  const double bytes = (40 + 30 + 20) * 4 * 8 * 7.0 / 8;
  const plan::Plan assumed = tensor::plan_of(*x, request);
  EXPECT_EQ(assumed.workers, 8);
  EXPECT_EQ(assumed.exchange.what, "peer");
  EXPECT_EQ(assumed.exchanged, static_cast<i64>(bytes));
  EXPECT_DOUBLE_EQ(assumed.seconds_exchange, bytes / 395e9 + starts);
  EXPECT_NE(assumed.describe().find("receives 395 GB/s from others"), std::string::npos);
  request.options.set_text("link_rate", "1e9");
  const plan::Plan given = tensor::plan_of(*x, request);
  EXPECT_DOUBLE_EQ(given.seconds_exchange, bytes / 1e9 + starts);
  EXPECT_EQ(given.describe().find("from others, as by NVLink"), std::string::npos);
}

// Rows of a long mode travel beside its MTTKRP: one chunk of eight is left, and the memory has both to serve.
TEST(PlanSeconds, ExchangeBesideMttkrpIsHidden) {
  constexpr std::array<i64, 3> dims{4000000, 30, 20};
  constexpr i64 entries = 5000000;
  plan::PlanRequest request;
  request.rank = 32;
  for (const auto &[name, value] : {std::pair("format", "sorted"), {"tiles", "none"}, {"empty_rows", "keep"}})
    request.options.set_text(name, value);
  request.options.set_text("link_rate", "1e9");
  constexpr double row = 32 * 8, long_mode = 4000000 * row / 2, others = (30 + 20) * row / 2;
  request.backends.assign(2, std::make_shared<FastDevice>(i64{1} << 34));
  const plan::Plan nothing_hides = plan::plan_of(dims, entries, ValueType::f64, request);
  EXPECT_EQ(nothing_hides.exchanged, static_cast<i64>(long_mode + others));
  EXPECT_NEAR(nothing_hides.seconds_exchange, (long_mode + others) / 1e9 + starts, 1e-9);

  request.backends.assign(2, std::make_shared<SlowDevice>(i64{1} << 34));
  const plan::Plan hidden = plan::plan_of(dims, entries, ValueType::f64, request);
  EXPECT_EQ(hidden.exchanged, nothing_hides.exchanged);
  EXPECT_NEAR(hidden.seconds_exchange,
              (long_mode / 8 + others) / 1e9 + 2 * long_mode * 7 / 8 / SlowDevice::reading_rate + starts, 1e-9);

  request.options.set_text("overlap", "off");
  const plan::Plan off = plan::plan_of(dims, entries, ValueType::f64, request);
  EXPECT_NEAR(off.seconds_exchange, (long_mode + others) / 1e9 + starts, 1e-9);
}

// How fast a tensor comes is measured with what is free; no copy goes for it.
TEST(PlanSeconds, AreNotToldWhereMeasuringWouldTakeMemoryAway) {
  const std::vector<double> values(40 * 30 * 20, 1.0);
  const auto x = sparse_tensor<double>({40, 30, 20}, values, "sorted", "none");
  plan::PlanRequest request;
  request.rank = 4;
  for (const auto &[free, known] : {std::pair(i64{5} << 20, true), std::pair(i64{0}, false)}) {
    request.backends = {std::make_shared<FastDevice>(100000, free)};
    const plan::Plan some = tensor::plan_of(*x, request);
    ASSERT_GT(some.device.streamed, 0);
    EXPECT_EQ(some.seconds_mttkrp > 0, known);
    for (const plan::ModePlan &mode : some.modes)
      EXPECT_EQ(mode.seconds > 0, known);
  }
}

/// Notes the types that it is asked about.
class AskedDevice final : public kernels::reference::ReferenceBackend {
public:
  bool gathers_f32(const kernels::TensorView &) const override { return true; }
  kernels::Prediction predict_mttkrp(const kernels::TensorView &, const kernels::MttkrpArgs &args,
                                     const kernels::Rates &) const override {
    for (const ConstMatrix &a : args.factors)
      rows.insert(a.type);
    sums.insert(args.out.type);
    return {};
  }
  mutable std::set<ValueType> rows, sums;
};

// What copying factors to f32 takes is predicted with the updates: 20 bytes a number.
TEST(PlanSeconds, AreAskedForThePrecision) {
  const std::vector<i64> dims{40, 30, 20};
  const Options options;
  const auto check = [&](ValueType type, plan::Precision precision, ValueType rows, ValueType sums) {
    const AskedDevice device;
    const plan::Layout layout = plan::layout_of(dims, 5000, type, {plan::TensorSettings(options), true, 1, {}});
    plan::SweepWork work{device, 4,         1, kernels::Conflicts::automatic, plan::ShardingRule::automatic,
                         false,  precision, {}};
    const double without = plan::predict_sweep(layout, work).seconds_update;
    work.rates.read = 1e9;
    const plan::SweepPrediction sweep = plan::predict_sweep(layout, work);
    EXPECT_EQ(device.rows, std::set{rows});
    EXPECT_EQ(device.sums, std::set{sums});
    EXPECT_EQ(sweep.gathers, precision.f32_rows);
    EXPECT_DOUBLE_EQ(sweep.seconds_update - without, precision.f32_rows ? 20 * 4 * 90 / 1e9 : 0);
  };
  check(ValueType::f64, {}, ValueType::f64, ValueType::f64);
  check(ValueType::f64, {false, true}, ValueType::f32, ValueType::f64);
  check(ValueType::f32, {}, ValueType::f32, ValueType::f32);
  check(ValueType::f32, {true, false}, ValueType::f32, ValueType::f64);
}

/// Notes the dense tensors that it is asked about, and the rows of their results.
class DenseDevice final : public FastDevice {
public:
  using FastDevice::FastDevice;
  kernels::Prediction predict_mttkrp(const kernels::TensorView &x, const kernels::MttkrpArgs &args,
                                     const kernels::Rates &) const override {
    const auto &dense = std::get<kernels::DenseView>(x);
    asked.insert(fmt::format("{}, mode {}: rows {} to {} of {}", fmt::join(dense.dims, "x"), args.mode, args.rows.begin,
                             args.rows.end, args.out.rows));
    return {"", "", 0, kernel_seconds};
  }
  mutable std::set<std::string> asked;
};

// Each of two GPUs has slabs, slices of the mode that is slowest in memory, and kernels work on them as on a tensor by
// itself; in order each takes all of it.
TEST(PlanSeconds, KernelsAreAskedForTheSlabsThatAGpuHas) {
  const std::vector<double> values(12 * 5 * 9, 1.0);
  const auto check = [&](const char *groups, const char *deterministic, const std::set<std::string> &asked) {
    SCOPED_TRACE(testing::Message() << groups << ", deterministic " << deterministic);
    const auto x = dense_tensor<double>({12, 5, 9}, values, groups);
    const auto device = std::make_shared<DenseDevice>(i64{1} << 30);
    plan::PlanRequest request;
    request.rank = 4;
    request.options.set_text("deterministic", deterministic);
    request.backends.assign(2, device);
    tensor::plan_of(*x, request);
    EXPECT_EQ(device->asked, asked);
  };
  check("none", "0",
        {"12x5x5, mode 0: rows 0 to 12 of 12", "12x5x5, mode 1: rows 0 to 5 of 5", "12x5x5, mode 2: rows 0 to 5 of 5"});
  check("none", "1",
        {"12x5x9, mode 0: rows 0 to 12 of 12", "12x5x9, mode 1: rows 0 to 5 of 5", "12x5x9, mode 2: rows 0 to 9 of 9"});
  // The partial product of the last two modes is a mode of 45 cells, of which a GPU has 25.
  check("0|1,2", "0", {"12x5x5, mode 0: rows 0 to 12 of 12", "12x25, mode 1: rows 0 to 25 of 25"});
  check("0,1|2", "0", {"60x5, mode 0: rows 0 to 60 of 60", "12x5x5, mode 2: rows 0 to 5 of 5"});
}

} // namespace
} // namespace td::test
