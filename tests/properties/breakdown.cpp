// What a run says its workers' time went to.
#include <chrono>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/planted.hpp"

namespace {

using namespace tdtest;

constexpr std::size_t phases = 4;
enum Phase { compute, host_device, exchange, idle };

/// A run's breakdown, without the first iteration.
struct Times {
  Times(const td_report *report, const char *key) : workers(static_cast<std::size_t>(report_i64(report, "workers"))) {
    const auto all = report_series(report, key);
    iterations = all.size() / (workers * phases);
    EXPECT_EQ(all.size(), iterations * workers * phases);
    seconds.resize(workers * phases);
    for (std::size_t k = 0; k < all.size(); ++k) {
      EXPECT_GE(all[k], 0) << key << "[" << k << "]";
      if (k >= workers * phases)
        seconds[k % (workers * phases)] += all[k];
    }
  }
  double of(std::size_t worker, Phase phase) const { return seconds[worker * phases + phase]; }
  double total(std::size_t worker) const {
    return of(worker, compute) + of(worker, host_device) + of(worker, exchange) + of(worker, idle);
  }

  std::size_t workers, iterations = 0;
  std::vector<double> seconds;
};

Options options(int iterations, const char *breakdown = "1") {
  return Options{{"tol", "0"}, {"max_iters", std::to_string(iterations)}, {"seed", "3"}, {"breakdown", breakdown}};
}

class Breakdown : public OnPlace {
protected:
  Random random_{71};
};

int32_t wait_5_ms(const td_report *, void *) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return 0;
}

// The caller keeps the first worker for 5 ms an iteration, during which the others are idle.
TEST_P(Breakdown, PartsSumToTheWhole) {
  const Planted p = planted(random_, {40, 31, 23}, 3, 0.2, 0.1);
  const Tensor x = make_tensor(context(), format(), p.entries);
  const Fitted run = cpals(context(), x, 8, options(21), nullptr, wait_5_ms);
  const Times iteration(run.report, "worker.iteration_seconds"), mttkrp(run.report, "worker.mttkrp_seconds");
  const auto elapsed = report_series(run.report, "seconds");
  ASSERT_EQ(iteration.iterations, 21U);
  const double whole = elapsed.back() - elapsed.front();
  EXPECT_GE(whole, 0.1);
  for (std::size_t worker = 0; worker < iteration.workers; ++worker) {
    SCOPED_TRACE(worker);
    EXPECT_NEAR(iteration.total(worker), whole, 0.1 * whole); // the ends of both may be apart
    EXPECT_GT(mttkrp.of(worker, compute), 0);
    for (const Phase phase : {compute, host_device, exchange, idle})
      EXPECT_LE(mttkrp.of(worker, phase), iteration.of(worker, phase) * (1 + 1e-9));
    if (GetParam().device.find('@') != std::string::npos) {
      EXPECT_GT(mttkrp.of(worker, host_device), 0) << "the tensor is streamed";
    }
    if (worker > 0) {
      EXPECT_GE(iteration.of(worker, idle), 0.09);
      EXPECT_GT(iteration.of(worker, exchange), 0);
    }
  }
}

TEST_P(Breakdown, ChangesNoResultAndIsLeftOutUnlessAskedFor) {
  const Planted p = planted(random_, {12, 11, 9}, 3, 0.3, 0.2);
  const Tensor x = make_tensor(context(), format(), p.entries);
  Options with = options(6), without = options(6, "0");
  for (Options *const each : {&with, &without})
    each->set("deterministic", "1");
  const Fitted measured = cpals(context(), x, 3, with), plain = cpals(context(), x, 3, without);
  EXPECT_EQ(report_series(measured.report, "fit"), report_series(plain.report, "fit"));
  for (const char *key : {"worker.entries", "worker.rows", "worker.mttkrp_seconds", "worker.iteration_seconds"}) {
    EXPECT_FALSE(report_series(measured.report, key).empty()) << key;
    EXPECT_TRUE(report_series(plain.report, key).empty()) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Breakdown, testing::ValuesIn(places({"coo", "blco", "sorted", "dense"})), place_name);

class UnequalLoad : public Breakdown {
protected:
  /// Most entries, so many, are in row 0 of two modes, which one worker has.
  Entries entries(int64_t heavy) {
    Entries all({20, 20, heavy});
    for (int64_t k = 0; k < heavy; ++k)
      all.add({0, 0, k}, random_.symmetric());
    for (int64_t k = 0; k < heavy / 10; ++k)
      all.add({1 + k % 19, 1 + k / 19 % 19, k * 10}, random_.symmetric());
    return all;
  }
};

// Another program may stop the worker that has little to do, and on a fast device few entries take no longer than a
// kernel's start: one of three runs, of ten times as many entries each, has to show it.
TEST_P(UnequalLoad, OthersAreIdle) {
  const std::string &device = GetParam().device;
  if (device == "reference" || device == "cpu" || device == "cuda")
    GTEST_SKIP() << "one worker has all the load";
  if (device.find('@') != std::string::npos)
    GTEST_SKIP() << "its rows' lists alone take more than the device has";
  int64_t heavy = light() ? 40000 : 400000; // kernels in software are slow
  for (int attempt = 1;; ++attempt, heavy *= 10) {
    const Entries e = entries(heavy);
    const Tensor x =
        make_sparse(context(), e, {}, Options{{"format", "sorted"}, {"groups", "none"}, {"sharding", "rows"}});
    const Fitted run = cpals(context(), x, 16, options(5));
    const Times iteration(run.report, "worker.iteration_seconds"), mttkrp(run.report, "worker.mttkrp_seconds");
    if (iteration.workers == 1)
      GTEST_SKIP() << "one worker has all the load";
    const auto load = report_series(run.report, "worker.entries"), rows = report_series(run.report, "worker.rows");
    ASSERT_EQ(load.size(), 3 * iteration.workers);
    EXPECT_EQ(load[0], heavy);
    EXPECT_EQ(load[1], heavy);
    for (std::size_t mode = 0; mode < 3; ++mode) {
      double entries = 0, owned = 0;
      for (std::size_t worker = 0; worker < iteration.workers; ++worker) {
        entries += load[3 * worker + mode];
        owned += rows[3 * worker + mode];
      }
      EXPECT_EQ(entries, e.nnz());
      EXPECT_EQ(owned, e.dims[mode]);
    }
    bool shown = true;
    for (std::size_t worker = 1; worker < iteration.workers; ++worker) {
      // Whatever else an iteration computes counts as well: who is stopped there has less time left to be idle.
      const double less = iteration.of(0, compute) - iteration.of(worker, compute);
      shown = shown && mttkrp.of(0, compute) > mttkrp.of(worker, compute) && less > 0 &&
              iteration.of(worker, idle) > iteration.of(0, idle) + less / 4;
    }
    if (shown)
      return;
    ASSERT_LT(attempt, 3) << "worker 0 computed " << iteration.of(0, compute) << " s, MTTKRP " << mttkrp.of(0, compute)
                          << " s, and was idle " << iteration.of(0, idle) << " s, worker 1 " << iteration.of(1, compute)
                          << " s, MTTKRP " << mttkrp.of(1, compute) << " s, and " << iteration.of(1, idle) << " s";
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnequalLoad, testing::ValuesIn(places({"sorted"})), place_name);

} // namespace
