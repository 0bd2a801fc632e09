// Several threads at once, each with a context of its own, sharing what td.h says may be shared. Meant for
// ThreadSanitizer; run everywhere.
#include <atomic>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/planted.hpp"
#include "support/temporary.hpp"

namespace {

using namespace tdtest;

/// Runs work(0) .. work(n - 1) on threads that start together; an exception of any is a failure of the test.
void at_once(int n, const std::function<void(int)> &work) {
  std::atomic<int> waiting{n};
  std::vector<std::string> errors(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t)
    threads.emplace_back([&, t] {
      waiting.fetch_sub(1);
      while (waiting.load() > 0)
        std::this_thread::yield();
      try {
        work(t);
      } catch (const std::exception &e) {
        errors[static_cast<std::size_t>(t)] = e.what();
      }
    });
  for (auto &thread : threads)
    thread.join();
  for (int t = 0; t < n; ++t)
    EXPECT_EQ(errors[static_cast<std::size_t>(t)], "") << "thread " << t;
}

void require(bool holds, const char *what) {
  if (!holds)
    throw std::runtime_error(what);
}

constexpr const char *devices[] = {"cpu", "cpu:2", "reference", "cpu:3"};

class Threads : public testing::Test {
protected:
  Random random_{71};
  Planted p_ = planted(random_, {20, 15, 10}, 3, 0.4, 0.2);
  Factors factors_ = random_factors(random_, p_.entries.dims, 4, TD_F64);
  Context maker_ = make_context("cpu:2");
};

TEST_F(Threads, EverythingAtOnceOnSharedTensors) {
  const TemporaryFolder folder;
  std::vector<Tensor> tensors;
  for (const char *format : {"coo", "blco", "sorted", "dense"})
    tensors.push_back(make_tensor(maker_, format, p_.entries));
  const Ktensor start = make_ktensor(maker_, random_factors(random_, p_.entries.dims, 3, TD_F64));
  const Options options{{"tol", "0"}, {"max_iters", "4"}};
  maker_.reset(); // tensors and ktensors outlive the context they were made with
  std::vector<Bounded> expected;
  for (int mode = 0; mode < 3; ++mode)
    expected.push_back(oracle_mttkrp(p_.entries, factors_, mode));
  std::vector<double> fits(8);
  at_once(8, [&](int t) {
    const Context context = make_context(devices[t % 4]);
    for (const Tensor &x : tensors) {
      for (int mode = 0; mode < 3; ++mode)
        require(
            within_bound(mttkrp(context, x, factors_, mode, TD_F64), expected[static_cast<std::size_t>(mode)], TD_F64),
            "a wrong product");
      const Fitted run = cpals(context, x, 3, options, start);
      fits[static_cast<std::size_t>(t)] = report_f64(run.report, "fit");
      std::vector<int64_t> counts(20);
      check(td_tensor_slice_counts(x, 0, counts.data()));
      require(tensor_norm(x) > 0, "no norm");
      const std::string file = folder.file(std::to_string(t) + (tensor_str(x, "format") == "dense" ? ".npy" : ".tns"));
      check(td_tensor_write(x, file.c_str(), nullptr));
      const Tensor back = make<Tensor>(td_tensor_read, context, file.c_str(), nullptr);
      require(tensor_nnz(back) == tensor_nnz(x), "another number of entries in the file");
    }
  });
  for (const double fit : fits)
    EXPECT_NEAR(fit, fits[0], 1e-10); // another order of sums, see properties/cpals.cpp
}

TEST_F(Threads, ContextsComeAndGo) {
  at_once(6, [&](int t) {
    for (int n = 0; n < 10; ++n) {
      const Context context = make_context(devices[(t + n) % 4]);
      const Tensor x = make_tensor(context, n % 2 == 0 ? "blco" : "dense", p_.entries);
      mttkrp(context, x, factors_, n % 3, TD_F64);
    }
  });
}

// A handle that ends in one thread while another works with it: that call is served or refused, nothing between.
TEST_F(Threads, HandlesEndElsewhere) {
  for (int n = 0; n < 20; ++n) {
    const Tensor x_owner = make_tensor(maker_, "sorted", p_.entries);
    const Ktensor k_owner = make_ktensor(maker_, factors_);
    td_tensor *const x = x_owner; // their owners end them once more, which is nothing
    td_ktensor *const k = k_owner;
    at_once(4, [&](int t) {
      if (t == 0) {
        td_tensor_destroy(x);
        td_ktensor_destroy(k);
        return;
      }
      const Context context = make_context("cpu");
      std::vector<double> out(20 * 4);
      const td_status s = td_mttkrp_ktensor(context, x, 0, k, out.data(), 20, TD_HOST);
      require(s == TD_OK || s == TD_ERR_HANDLE, "neither served nor refused");
    });
  }
}

TEST_F(Threads, EachThreadHasItsOwnErrorText) {
  at_once(6, [&](int t) {
    require(last_error().empty(), "a text before any failure of this thread");
    for (int n = 0; n < 50; ++n) {
      const std::string name = "thread" + std::to_string(t);
      Context c;
      require(td_context_create(name.c_str(), nullptr, c.out()) == TD_ERR_ARGUMENT, "accepted");
      require(last_error().find(name) != std::string::npos, "another thread's text");
    }
  });
}

} // namespace
