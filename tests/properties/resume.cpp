// Checkpoints: 20 iterations and then 30 are bit for bit 50 iterations.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/planted.hpp"
#include "support/problem.hpp"
#include "support/temporary.hpp"

namespace {

using namespace tdtest;

class Resume : public OnPlace {
protected:
  Options options(const char *iterations) {
    return Options{{"tol", "0"}, {"max_iters", iterations}, {"deterministic", "1"}, {"seed", "9"}};
  }
  Random random_{47};
  Planted p_ = planted(random_, {14, 11, 9}, 3, 0.3, 0.2);
  TemporaryFolder folder_;
};

/// The first of several devices or workers, with the limit of each, by which a dense tensor's products are chosen; none
/// where there is but one.
std::optional<Context> one_of(const std::string &devices) {
  const auto limit = std::min(devices.find('@'), devices.size());
  if (const auto comma = devices.find(','); comma != std::string::npos)
    return context_if_there(devices.substr(0, comma) + devices.substr(limit));
  return devices.starts_with("cpu:") ? context_if_there("cpu") : std::nullopt;
}

void expect_same_bits(const Fitted &a, const Fitted &b) {
  EXPECT_EQ(report_i64(a.report, "iterations"), report_i64(b.report, "iterations"));
  for (const char *series : {"fit", "fit_change", "residual", "effective_rank"})
    EXPECT_EQ(report_series(a.report, series), report_series(b.report, series)) << series;
  // Times differ, but none is missing.
  for (const char *series : {"seconds", "mttkrp_seconds"})
    EXPECT_EQ(report_series(a.report, series).size(), report_series(b.report, series).size()) << series;
  EXPECT_EQ(weights_of(a.model), weights_of(b.model));
  EXPECT_EQ(factors_of(a.model).a, factors_of(b.model).a);
}

TEST_P(Resume, TwentyAndThirtyAreFifty) {
  for (const td_type type : {TD_F32, TD_F64}) {
    const Tensor x = make_tensor(context(), format(), p_.entries, {type, TD_I64, 0});
    const std::string file = folder_.file("run.tdb");
    const Fitted whole = cpals(context(), x, 3, options("50"));
    const Fitted first = cpals(context(), x, 3, options("20").set("checkpoint", file).set("checkpoint_iters", "20"));
    ASSERT_EQ(report_i64(first.report, "iterations"), 20);
    const Fitted second = cpals(context(), x, 3, options("50").set("resume", file));
    EXPECT_EQ(report_i64(second.report, "resumed_from"), 20);
    expect_same_bits(whole, second);
  }
}

// Rows that no entry touches count in QR decompositions of the start alone.
TEST_P(Resume, ByQr) {
  const Tensor x = make_tensor(context(), format(), distinct_entries(random_, {20, 20, 20}, 12, TD_F64));
  const std::string file = folder_.file("run.tdb");
  const Fitted whole = cpals(context(), x, 3, options("6").set("solve", "qr"));
  cpals(context(), x, 3, options("3").set("solve", "qr").set("checkpoint", file));
  expect_same_bits(whole, cpals(context(), x, 3, options("6").set("solve", "qr").set("resume", file)));
}

// A run that is cut off between checkpoints goes on from the last one.
TEST_P(Resume, FromTheLastCheckpoint) {
  const Tensor x = make_tensor(context(), format(), p_.entries);
  const std::string file = folder_.file("run.tdb");
  int left = 17;
  const auto stop_at_17 = [](const td_report *, void *user) -> int32_t { return --*static_cast<int *>(user) == 0; };
  const Fitted cut = cpals(context(), x, 3, options("50").set("checkpoint", file).set("checkpoint_iters", "5"), nullptr,
                           stop_at_17, &left);
  EXPECT_EQ(cut.status, TD_STOPPED);
  EXPECT_EQ(report_i64(cut.report, "iterations"), 17);
  EXPECT_EQ(report_str(cut.report, "stop_reason"), "callback");
  const Fitted rest = cpals(context(), x, 3, options("50").set("resume", file));
  EXPECT_GE(report_i64(rest.report, "resumed_from"), 15);
  expect_same_bits(cpals(context(), x, 3, options("50")), rest);
}

// No bit depends on who holds what: a run that several devices began goes on on one of them.
TEST_P(Resume, OnOneDeviceAfterSeveral) {
  const auto one = one_of(GetParam().device);
  if (!one)
    GTEST_SKIP() << GetParam().device << " is one worker";
  for (const td_type type : {TD_F32, TD_F64}) {
    const Tensor x = make_tensor(context(), format(), p_.entries, {type, TD_I64, 0});
    const Tensor there = make_tensor(*one, format(), p_.entries, {type, TD_I64, 0});
    const std::string file = folder_.file("run.tdb");
    cpals(context(), x, 3, options("20").set("checkpoint", file).set("checkpoint_iters", "20"));
    const Fitted rest = cpals(*one, there, 3, options("50").set("resume", file));
    EXPECT_EQ(report_i64(rest.report, "resumed_from"), 20);
    expect_same_bits(cpals(*one, there, 3, options("50")), rest);
    expect_same_bits(cpals(context(), x, 3, options("50")), rest);
  }
}

// More entries than are summed at once.
TEST_P(Resume, SeveralSpansOnOneDeviceAfterSeveral) {
  const auto one = one_of(GetParam().device);
  if (!one || light())
    GTEST_SKIP() << (one ? "TD_TEST_LIGHT: a million entries" : "one worker");
  const Planted p = planted(random_, {120, 110, 100}, 3, 0, 0.2);
  const Fitted whole =
      cpals(*one, make_tensor(*one, format(), p.entries), 3, options("3").set("exact_residual", "always"));
  const Tensor x = make_tensor(context(), format(), p.entries);
  expect_same_bits(cpals(context(), x, 3, options("3").set("exact_residual", "always")), whole);
}

TEST_P(Resume, NothingLeftToDo) {
  const Tensor x = make_tensor(context(), format(), p_.entries);
  const std::string file = folder_.file("run.tdb");
  const Fitted first = cpals(context(), x, 3, options("10").set("checkpoint", file));
  const Fitted again = cpals(context(), x, 3, options("10").set("resume", file));
  EXPECT_EQ(report_i64(again.report, "resumed_from"), 10);
  expect_same_bits(first, again);
}

TEST_P(Resume, RefusesWhatDoesNotBelongToTheRun) {
  const Tensor x = make_tensor(context(), format(), p_.entries);
  const std::string file = folder_.file("run.tdb");
  cpals(context(), x, 3, options("10").set("checkpoint", file));
  const Tensor other = make_tensor(context(), format(), planted(random_, {14, 11, 8}, 3, 0.3, 0.2).entries);
  const auto resumed = [&](const td_tensor *tensor, int64_t rank, Options &&o) {
    Ktensor model;
    return td_cpals(context(), tensor, rank, nullptr, o.set("resume", file), nullptr, nullptr, model.out(), nullptr);
  };
  EXPECT_LT(resumed(other, 3, options("20")), 0) << "dims 14 x 11 x 8 after 14 x 11 x 9";
  EXPECT_LT(resumed(x, 4, options("20")), 0) << "rank 4 after rank 3";
  EXPECT_EQ(resumed(x, 3, options("20")), TD_OK);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_EQ(resumed(x, 3, options("20")), TD_ERR_IO) << "half a checkpoint";
  EXPECT_FALSE(last_error().empty());
}

INSTANTIATE_TEST_SUITE_P(All, Resume, testing::ValuesIn(places({"coo", "blco", "sorted", "sorted_drop", "dense"})),
                         place_name);

} // namespace
