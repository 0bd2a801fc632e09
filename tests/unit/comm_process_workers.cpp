// Several workers of one process, which meet as processes do; how those of several processes meet is in
// comm_threads.cpp.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "comm/process_workers.hpp"
#include "core/error.hpp"
#include "tensor/row_blocks.hpp"

namespace {

using namespace td;

/// The functions of a process that is alone, each of which may fail.
struct Alone {
  std::thread::id thread = std::this_thread::get_id();
  i64 calls = 0, aborts = 0;
  i64 fails_from = -1;
  bool lacking = false;
  i64 agreed = 0;

  static std::int32_t called(void *user) {
    auto &alone = *static_cast<Alone *>(user);
    EXPECT_EQ(std::this_thread::get_id(), alone.thread) << "a function of the caller's on another thread than his";
    const i64 call = alone.calls++;
    return alone.fails_from >= 0 && call >= alone.fails_from ? 7 : 0;
  }
  /// With `lacking` another process says that it has no room for what is exchanged.
  static std::int32_t all_reduce(double *data, i64 count, std::int32_t operation, void *user) {
    auto &alone = *static_cast<Alone *>(user);
    if (alone.lacking && alone.calls > alone.agreed && count == 1 && operation == 1)
      *data = 1;
    return called(user);
  }
  static std::int32_t all_to_all(const void *sent, const i64 *sent_bytes, void *received, const i64 *received_bytes,
                                 void *user) {
    EXPECT_EQ(sent_bytes[0], received_bytes[0]);
    if (sent_bytes[0] > 0)
      std::copy_n(static_cast<const char *>(sent), sent_bytes[0], static_cast<char *>(received));
    return called(user);
  }
  static std::int32_t broadcast(void *, i64, std::int32_t root, void *user) {
    EXPECT_EQ(root, 0);
    return called(user);
  }
  static void abort(std::int32_t, void *user) { ++static_cast<Alone *>(user)->aborts; }
  ProcessFunctions functions() { return {all_reduce, all_to_all, broadcast, abort, nullptr, this}; }
};

class WorkersOfOneProcess : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    workers_ = ProcessWorkers::make(std::make_shared<Processes>(0, 1, alone_.functions()), GetParam());
  }
  int size() const { return GetParam(); }
  Alone &alone() { return alone_; }
  ProcessWorkers &workers() { return *workers_; }
  /// body(processes) for each worker: for the first on this thread.
  void run(const std::function<void(Processes &)> &body) {
    std::vector<std::jthread> threads;
    for (int worker = 1; worker < size(); ++worker)
      threads.emplace_back([&, worker] { body(workers_->of(worker)); });
    body(workers_->of(0));
  }

private:
  Alone alone_;
  std::shared_ptr<ProcessWorkers> workers_;
};

TEST_P(WorkersOfOneProcess, HaveRanksAndOneBlock) {
  EXPECT_EQ(workers().size(), size());
  EXPECT_EQ(workers().total(), size());
  for (int worker = 0; worker < size(); ++worker) {
    const Processes &own = workers().of(worker);
    EXPECT_EQ(own.rank(), worker);
    EXPECT_EQ(own.size(), size());
    EXPECT_EQ(own.processes(), 1);
    EXPECT_EQ(own.process_of(worker), 0);
    EXPECT_EQ(tensor::block_of(own).of(12).size(), worker == 0 ? 12 : 0);
  }
}

TEST_P(WorkersOfOneProcess, ExchangeAllThatThereIs) {
  run([&](Processes &p) {
    for (int round = 0; round < 20; ++round) {
      std::vector<double> sum{1.0 + p.rank(), static_cast<double>(round)}, most{-1.0 * p.rank()};
      p.all_reduce(sum, Reduction::sum);
      EXPECT_EQ(sum, (std::vector<double>{size() * (size() + 1) / 2.0, 1.0 * size() * round}));
      p.all_reduce(most, Reduction::max);
      EXPECT_EQ(most.front(), 0);
      std::vector<i64> numbers(static_cast<std::size_t>(size()));
      std::iota(numbers.begin(), numbers.end(), 100 * p.rank());
      const std::vector<i64> came = p.all_to_all(numbers);
      for (std::size_t k = 0; k < came.size(); ++k)
        EXPECT_EQ(came[k], 100 * static_cast<i64>(k) + p.rank());
      for (int root = 0; root < size(); ++root) {
        int number = 10 * round + p.rank();
        p.broadcast(&number, sizeof number, root);
        EXPECT_EQ(number, 10 * round + root);
      }
    }
  });
  EXPECT_EQ(alone().aborts, 0);
}

// Whichever worker fails, wherever the others are: all have its status and sentence.
TEST_P(WorkersOfOneProcess, FailTogether) {
  for (int failing = 0; failing < size(); ++failing)
    run([&](Processes &p) {
      p.begin_call();
      p.agree();
      try {
        if (p.rank() == failing)
          p.fail(Status::shape, "worker " + std::to_string(failing));
        double number = 1;
        p.all_reduce({&number, 1}, Reduction::sum);
        ADD_FAILURE() << "a failure that was not heard of";
      } catch (const AgreedError &e) {
        EXPECT_EQ(e.status(), Status::shape);
        EXPECT_EQ(std::string(e.what()), "process 0 of 1: worker " + std::to_string(failing));
      }
    });
}

// What the first worker puts together for an exchange may have no room, on any process: all workers say so.
TEST_P(WorkersOfOneProcess, HaveNoRoomTogether) {
  alone().lacking = true;
  alone().agreed = alone().calls; // that none has failed is agreed on before
  run([&](Processes &p) {
    try {
      p.all_to_all(std::vector<i64>(static_cast<std::size_t>(size()), 1));
      ADD_FAILURE() << "an exchange for which there was no room";
    } catch (const Error &e) {
      EXPECT_EQ(e.status(), Status::host_memory) << e.what();
    }
  });
}

// A function of the caller's that fails, and all later ones: no worker waits for ever, and the process aborts.
TEST_P(WorkersOfOneProcess, EndWhereAFunctionFails) {
  for (i64 call = 0; call < 8; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    SetUp(); // those that failed are of no more use
    alone().fails_from = alone().calls + call;
    const i64 before = alone().aborts;
    std::vector<std::string> texts(static_cast<std::size_t>(size()));
    run([&](Processes &p) {
      p.begin_call();
      try {
        try {
          double number = 1;
          p.all_reduce({&number, 1}, Reduction::sum);
          p.all_gather(std::vector<i64>{p.rank()});
          p.broadcast(&number, sizeof number, size() - 1);
          p.agree();
        } catch (const AgreedError &) {
          throw;
        } catch (const Error &e) {
          p.fail(e.status(), e.what());
        }
      } catch (const AgreedError &e) {
        EXPECT_EQ(e.status(), Status::communication);
        texts[static_cast<std::size_t>(p.rank())] = e.what();
      }
    });
    alone().fails_from = -1;
    for (const std::string &text : texts)
      EXPECT_EQ(text, texts.front());
    EXPECT_NE(texts.front(), "");
    EXPECT_GT(alone().aborts, before);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, WorkersOfOneProcess, testing::Values(1, 2, 3, 5));

} // namespace
