// What a communicator promises, of each kind; on devices of TD_TEST_DEVICES where a word there names several.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <sstream>
#include <thread>

#include "comm/process_workers.hpp"
#include "core/error.hpp"
#include "core/rows.hpp"
#include "kernels/loader.hpp"
#include "kernels/reference/backend.hpp"

namespace {

using namespace td;
using kernels::Backend;
using kernels::DeviceBuffer;
using kernels::Exchange;

enum class By {
  threads,
  staged, // by way of host memory, a few rows at a time
  peer,
  nccl,
  functions, // of a caller, as processes bring them
  workers,   // 2, 1, 3, 1, ... of such processes
};

struct Workers {
  int size;
  By by;
  std::string devices = ""; // empty: reference backends, whose memory all reach
};

std::vector<std::shared_ptr<Backend>> open(const Workers &workers) {
  if (!workers.devices.empty())
    return kernels::open_backends(kernels::parse_devices(workers.devices, true), 1);
  std::vector<std::shared_ptr<Backend>> backends;
  for (int k = 0; k < workers.size; ++k)
    backends.push_back(kernels::reference::make_backend());
  return backends;
}

/// What a process brings to a function that all call.
struct Brought {
  const void *data = nullptr;
  const i64 *bytes = nullptr;
};

/// A process whose functions are those of a communicator of threads.
struct Member {
  std::unique_ptr<Communicator> others;
  std::shared_ptr<std::vector<Brought>> board;

  static Member &of(void *user) { return *static_cast<Member *>(user); }

  static std::int32_t all_reduce(double *data, i64 count, std::int32_t operation, void *user) {
    const std::span<double> all(data, static_cast<std::size_t>(count));
    operation == 0 ? of(user).others->allreduce_sum(all) : of(user).others->allreduce_max(all);
    return 0;
  }

  static std::int32_t all_to_all(const void *sent, const i64 *sent_bytes, void *received, const i64 *received_bytes,
                                 void *user) {
    Member &m = of(user);
    const auto rank = static_cast<std::size_t>(m.others->rank());
    (*m.board)[rank] = {sent, sent_bytes};
    m.others->barrier();
    char *to = static_cast<char *>(received);
    for (std::size_t p = 0; p < m.board->size(); to += received_bytes[p++]) {
      const Brought &from = (*m.board)[p];
      const i64 before = std::accumulate(from.bytes, from.bytes + rank, i64{0});
      EXPECT_EQ(from.bytes[rank], received_bytes[p]);
      std::copy_n(static_cast<const char *>(from.data) + before, received_bytes[p], to);
    }
    m.others->barrier();
    return 0;
  }

  static std::int32_t broadcast(void *data, i64 bytes, std::int32_t root, void *user) {
    EXPECT_EQ(root, 0);
    of(user).others->broadcast(data, bytes);
    return 0;
  }
};

ProcessFunctions functions_of(Member &member) {
  return {Member::all_reduce, Member::all_to_all, Member::broadcast, [](std::int32_t, void *) {}, nullptr, &member};
}

/// The communicator of a process, or of a worker of one, with all that it stands on.
class OfProcess final : public Communicator {
public:
  OfProcess(std::shared_ptr<Member> member, std::shared_ptr<Processes> processes)
      : member_(std::move(member)), processes_(std::move(processes)), self_(make_process_communicator(*processes_)) {}

  int rank() const noexcept override { return self_->rank(); }
  int size() const noexcept override { return self_->size(); }
  void barrier() override { self_->barrier(); }
  void allreduce_sum(std::span<double> data) override { self_->allreduce_sum(data); }
  void allreduce_max(std::span<double> data) override { self_->allreduce_max(data); }
  void reduce_rows(ConstMatrix partial, Matrix out, std::span<const Ranges> owned) override {
    self_->reduce_rows(partial, out, owned);
  }
  void allgather_rows(Matrix a, std::span<const Ranges> owned) override { self_->allgather_rows(a, owned); }
  void exchange(const kernels::Transfers &sent, const kernels::Transfers &received) override {
    self_->exchange(sent, received);
  }
  void broadcast(void *data, i64 bytes) override { self_->broadcast(data, bytes); }
  void abort() noexcept override { self_->abort(); }

private:
  std::shared_ptr<Member> member_;
  std::shared_ptr<Processes> processes_;
  std::unique_ptr<Communicator> self_;
};

/// As many workers, of processes that have 2, 1, 3, 1, ... of them.
std::vector<std::unique_ptr<Communicator>> make_workers(int size) {
  constexpr int pattern[] = {2, 1, 3, 1};
  std::vector<int> counts;
  for (int left = size; left > 0; left -= counts.back())
    counts.push_back(std::min(left, pattern[counts.size() % 4]));
  const auto processes = static_cast<int>(std::ssize(counts));
  auto others = make_thread_communicators(processes);
  const auto board = std::make_shared<std::vector<Brought>>(counts.size());
  std::vector<std::vector<std::unique_ptr<Communicator>>> made(counts.size());
  {
    std::vector<std::jthread> threads; // they meet while they are made
    for (std::size_t p = 0; p < counts.size(); ++p)
      threads.emplace_back([&, p] {
        const auto member = std::make_shared<Member>(Member{std::move(others[p]), board});
        const auto workers = ProcessWorkers::make(
            std::make_shared<Processes>(static_cast<int>(p), processes, functions_of(*member)), counts[p]);
        for (int worker = 0; worker < counts[p]; ++worker)
          made[p].push_back(std::make_unique<OfProcess>(member, workers->shared(worker)));
      });
  }
  std::vector<std::unique_ptr<Communicator>> all;
  for (auto &some : made)
    std::move(some.begin(), some.end(), std::back_inserter(all));
  return all;
}

class Communicators : public testing::TestWithParam<Workers> {
protected:
  void SetUp() override {
    try {
      backends_ = open(GetParam());
      if (size() < 2)
        GTEST_SKIP() << GetParam().devices << " has one worker";
      make(20); // two or three rows of small matrices
    } catch (const Error &error) {
      if (error.status() != Status::backend_unavailable)
        throw;
      GTEST_SKIP() << error.what();
    }
  }
  int size() const { return static_cast<int>(backends_.size()); }

  /// So many bytes go by way of host memory at a time, where any do.
  void stage(i64 bytes) {
    if (GetParam().by == By::staged)
      make(bytes);
  }

  /// Runs body(communicator, device) on threads.
  template <class Body> void on_threads(Body &&body) {
    std::vector<std::jthread> threads;
    for (std::size_t k = 0; k < communicators_.size(); ++k)
      threads.emplace_back([this, &body, k] { body(*communicators_[k], *backends_[k]); });
  }

private:
  void make(i64 staged_bytes) {
    const By by = GetParam().by;
    if (by == By::peer || by == By::nccl) {
      std::vector<Backend *> devices;
      for (const auto &backend : backends_)
        devices.push_back(backend.get());
      communicators_ = make_device_communicators(devices, by == By::peer ? Exchange::peer : Exchange::nccl);
      return;
    }
    communicators_ = by == By::workers ? make_workers(size()) : make_thread_communicators(size());
    const auto board = std::make_shared<std::vector<Brought>>(communicators_.size());
    for (std::size_t k = 0; k < communicators_.size() && by == By::functions; ++k) {
      const auto member = std::make_shared<Member>(Member{std::move(communicators_[k]), board});
      communicators_[k] = std::make_unique<OfProcess>(
          member, std::make_shared<Processes>(static_cast<int>(k), size(), functions_of(*member)));
    }
    for (std::size_t k = 0; k < communicators_.size() && by == By::staged; ++k)
      communicators_[k] = make_staged_communicator(*backends_[k], std::move(communicators_[k]), staged_bytes);
  }

  std::vector<std::shared_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

/// Numbers in a device's memory.
template <class T> class OnDevice {
public:
  OnDevice(Backend &device, const std::vector<T> &from)
      : device_(device), count_(from.size()),
        memory_(device, static_cast<i64>(from.size() * sizeof(T)), "a test's numbers") {
    upload(from);
  }
  void upload(const std::vector<T> &from) { device_.upload(memory_.data(), from.data(), memory_.bytes()); }
  T *data() const { return static_cast<T *>(memory_.data()); }
  std::span<T> span() const { return {data(), count_}; }
  std::vector<T> get() const {
    std::vector<T> to(count_);
    device_.download(to.data(), memory_.data(), memory_.bytes());
    return to;
  }

private:
  Backend &device_;
  std::size_t count_;
  DeviceBuffer memory_;
};

TEST_P(Communicators, SumsAndLargestAreTheSameEverywhere) {
  on_threads([&](Communicator &c, Backend &device) {
    for (int round = 0; round < 50; ++round) { // the barrier is used again and again
      const OnDevice<double> data(device, {1.0 + c.rank(), static_cast<double>(round)});
      c.allreduce_sum(data.span());
      EXPECT_EQ(data.get(), (std::vector<double>{size() * (size() + 1) / 2.0, 1.0 * size() * round}));
      const OnDevice<double> largest(device, {static_cast<double>(c.rank()), -static_cast<double>(c.rank())});
      c.allreduce_max(largest.span());
      EXPECT_EQ(largest.get(), (std::vector<double>{size() - 1.0, 0}));
    }
  });
}

// Each array by itself, whatever goes with it.
TEST_P(Communicators, ArraysThatGoTogetherAreReducedAsAlone) {
  on_threads([&](Communicator &c, Backend &device) {
    for (int round = 0; round < 5; ++round) {
      const OnDevice<double> sums(device, {1.0 + c.rank(), 0.5, 2.0 * round});
      const OnDevice<double> largest(device, {-1.0 * c.rank(), 7.0 + c.rank()});
      const OnDevice<double> more(device, {0.25 * c.rank()});
      c.allreduce(std::vector<Reduced>{{sums.span(), kernels::Combine::sum},
                                       {largest.span(), kernels::Combine::max},
                                       {more.span(), kernels::Combine::sum}});
      EXPECT_EQ(sums.get(), (std::vector<double>{size() * (size() + 1) / 2.0, 0.5 * size(), 2.0 * round * size()}));
      EXPECT_EQ(largest.get(), (std::vector<double>{0, 6.0 + size()}));
      EXPECT_EQ(more.get(), (std::vector<double>{0.125 * size() * (size() - 1)}));
    }
  });
}

TEST_P(Communicators, RowsAreGatheredWithSums) {
  std::vector<Ranges> owned(static_cast<std::size_t>(size()));
  for (i64 i = 0; i < 6; ++i)
    owned[static_cast<std::size_t>(i % size())].push_back({i, i + 1});
  on_threads([&](Communicator &c, Backend &device) {
    std::vector<double> a(12, -1.0);
    for (i64 i = c.rank(); i < 6; i += size())
      a[static_cast<std::size_t>(2 * i)] = a[static_cast<std::size_t>(2 * i + 1)] = static_cast<double>(i);
    const OnDevice<double> rows(device, a);
    const OnDevice<double> sum(device, {1.5, 1.0 * c.rank()});
    c.gather_and_reduce({rows.data(), ValueType::f64, 6, 2, 2}, owned,
                        std::vector<Reduced>{{sum.span(), kernels::Combine::sum}});
    EXPECT_EQ(rows.get(), (std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
    EXPECT_EQ(sum.get(), (std::vector<double>{1.5 * size(), size() * (size() - 1) / 2.0}));
  });
}

// 0.1 + 0.2 + 0.3 is another number from the right.
TEST_P(Communicators, SumsAreTakenInTheOrderOfWorkers) {
  double expected = 0;
  for (int worker = 0; worker < size(); ++worker)
    expected += 0.1 * (worker + 1);
  on_threads([&](Communicator &c, Backend &device) {
    const OnDevice<double> data(device, {0.1 * (c.rank() + 1)});
    c.allreduce_sum(data.span());
    EXPECT_EQ(data.get().front(), expected);
  });
}

TEST_P(Communicators, ANotANumberIsTheLargest) {
  for (int bad = 0; bad < size(); ++bad)
    on_threads([&](Communicator &c, Backend &device) {
      const OnDevice<double> data(device, {c.rank() == bad ? std::nan("") : 1.0 + c.rank()});
      c.allreduce_max(data.span());
      EXPECT_TRUE(std::isnan(data.get().front())) << "worker " << bad << " had it";
    });
}

TEST_P(Communicators, RowsAreReducedAndGathered) {
  constexpr i64 rows = 5;
  std::vector<Ranges> owned(static_cast<std::size_t>(size())); // some own nothing when there are more than rows
  for (i64 i = 0; i < rows; ++i)
    owned[static_cast<std::size_t>(i % size())].push_back({i, i + 1});
  on_threads([&](Communicator &c, Backend &device) {
    std::vector<float> a(rows * 3, -1.0F); // 2 columns, ld 3
    for (i64 i = 0; i < rows; ++i)
      for (i64 r = 0; r < 2; ++r)
        a[static_cast<std::size_t>(i * 3 + r)] = static_cast<float>(i * 10 + r + c.rank());
    const OnDevice<float> there(device, a);
    const Matrix m{there.data(), ValueType::f32, rows, 2, 3};
    c.reduce_rows(m, m, owned); // in place
    c.allgather_rows(m, owned);
    const std::vector<float> got = there.get();
    for (i64 i = 0; i < rows; ++i) {
      for (i64 r = 0; r < 2; ++r)
        EXPECT_EQ(got[static_cast<std::size_t>(i * 3 + r)],
                  static_cast<float>(size() * (i * 10 + r) + static_cast<i64>(size() * (size() - 1) / 2)));
      EXPECT_EQ(got[static_cast<std::size_t>(i * 3 + 2)], -1.0F) << "padding was written";
    }
  });
}

// Each sends each other one two arrays, of lengths that tell the two apart, and some nothing.
TEST_P(Communicators, WhatIsExchangedArrivesInOrder) {
  const auto length = [](int from, int to, int number) { return i64{(7 * from + 3 * to + 5 * number) % 11}; };
  const auto content = [&](int from, int to, int number) {
    return std::vector<double>(static_cast<std::size_t>(length(from, to, number)), 100.0 * from + 10 * to + number);
  };
  on_threads([&](Communicator &c, Backend &device) {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::unique_ptr<OnDevice<double>>> arrays;
      kernels::Transfers sent, received;
      std::vector<std::pair<OnDevice<double> *, std::vector<double>>> expected;
      const auto add = [&](kernels::Transfers &to, int other, const std::vector<double> &numbers) {
        if (numbers.empty())
          return;
        arrays.push_back(std::make_unique<OnDevice<double>>(device, numbers));
        to.push_back({other, arrays.back()->data(), static_cast<i64>(numbers.size() * sizeof(double))});
      };
      for (int other = 0; other < size(); ++other)
        for (int number = 0; number < 2 && other != c.rank(); ++number) {
          add(sent, other, content(c.rank(), other, number));
          const std::vector<double> come = content(other, c.rank(), number);
          add(received, other, std::vector<double>(come.size(), -1));
          if (!come.empty())
            expected.emplace_back(arrays.back().get(), come);
        }
      if (round == 1) {
        c.begin_exchange(sent, received);
        const OnDevice<double> beside(device, {3.0});
        EXPECT_EQ(beside.get().front(), 3.0);
        c.end_exchanges();
      } else {
        c.exchange(sent, received);
      }
      for (const auto &[there, numbers] : expected)
        EXPECT_EQ(there->get(), numbers);
    }
  });
}

/// Ranges of rows of different lengths, dealt out to workers.
std::vector<Ranges> dealt(i64 rows, int workers) {
  std::vector<Ranges> owned(static_cast<std::size_t>(workers));
  for (i64 begin = 0, k = 0; begin < rows; ++k) {
    const i64 end = std::min(begin + 1 + k * k % 97, rows);
    owned[static_cast<std::size_t>((k + k / 5) % workers)].push_back({begin, end});
    begin = end;
  }
  return owned;
}

// Round after round the same memory, which nobody waits for on the host: what one sends must not change before all have
// it.
TEST_P(Communicators, RoundsFollowOneAnotherInOrder) {
  constexpr i64 rows = 3000, cols = 16;
  stage(7 * cols * 8);
  const std::vector<Ranges> owned = dealt(rows, size());
  on_threads([&](Communicator &c, Backend &device) {
    const auto rank = static_cast<std::size_t>(c.rank());
    const OnDevice<double> partial(device, std::vector<double>(rows * cols, 1.0 + c.rank()));
    const OnDevice<double> there(device, std::vector<double>(rows * cols, 0.0));
    const OnDevice<double> two(device, std::vector<double>(cols, 0.5));
    const Matrix from{partial.data(), ValueType::f64, rows, cols, cols};
    const Matrix to{there.data(), ValueType::f64, rows, cols, cols};
    constexpr int rounds = 6;
    for (int round = 0; round < rounds; ++round) {
      c.reduce_rows(from, to, owned);
      c.allgather_rows(to, owned);
      device.divide_columns(from, two.data()); // doubled while others may be late
      if (round + 1 < rounds)
        for (const Range &own : owned[rank])
          device.set_zero(to.slice(own.begin, own.end));
    }
    const double sum = size() * (size() + 1) / 2.0 * (1 << (rounds - 1));
    for (const double x : there.get())
      ASSERT_EQ(x, sum);
  });
}

// Sums and work on other rows go on between the beginning of gathers and their end.
TEST_P(Communicators, GathersInChunksEndWithAllRows) {
  constexpr i64 rows = 2000, cols = 16;
  stage(7 * cols * 8);
  constexpr int chunks = 3;
  const std::vector<Ranges> owned = dealt(rows, size());
  on_threads([&](Communicator &c, Backend &device) {
    const auto rank = static_cast<std::size_t>(c.rank());
    const OnDevice<double> there(device, std::vector<double>(rows * cols, 1.0));
    const OnDevice<double> half(device, std::vector<double>(cols, 0.5));
    const OnDevice<double> sum(device, {1.0});
    const Matrix a{there.data(), ValueType::f64, rows, cols, cols};
    constexpr int rounds = 5;
    for (int round = 0; round < rounds; ++round) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        std::vector<Ranges> some;
        for (const Ranges &ranges : owned)
          some.push_back(nth_rows(ranges, part_of({0, rows_of(ranges)}, chunk, chunks)));
        for (const Range &own : some[rank])
          device.divide_columns(a.slice(own.begin, own.end), half.data());
        c.begin_gather(a, some);
      }
      c.allreduce_sum(sum.span());
      c.end_exchanges();
    }
    for (const double x : there.get())
      ASSERT_EQ(x, 1 << rounds);
    EXPECT_EQ(sum.get().front(), std::pow(size(), rounds));
  });
}

TEST_P(Communicators, BroadcastComesFromTheFirst) {
  on_threads([&](Communicator &c, Backend &) {
    int number = 100 + c.rank();
    c.broadcast(&number, sizeof number);
    EXPECT_EQ(number, 100);
  });
}

TEST_P(Communicators, AbortFreesThoseWhoWaitAndThoseWhoCome) {
  if (GetParam().by == By::functions || GetParam().by == By::workers)
    GTEST_SKIP() << "a process tells of its failure where its call ends: tests/faults/processes.cpp";
  std::atomic<int> freed = 0;
  on_threads([&](Communicator &c, Backend &device) {
    if (c.rank() == size() - 1) {
      c.abort();
      return;
    }
    const OnDevice<double> data(device, {1.0});
    try {
      c.allreduce_sum(data.span());
    } catch (const WorkerAborted &) {
      ++freed;
    }
    EXPECT_THROW(c.barrier(), WorkerAborted);
    EXPECT_THROW(c.allreduce_sum(data.span()), WorkerAborted);
    device.wait();
  });
  EXPECT_EQ(freed, size() - 1);
}

// A worker that learns of another's failure ends what it has lent, which others may still be reading.
TEST(Communicator, WhatIsLentOutlivesAnAbort) {
  constexpr i64 rows = 100000, cols = 4;
  constexpr int size = 3;
  std::vector<Ranges> owned;
  for (int worker = 0; worker < size; ++worker)
    owned.push_back({part_of({0, rows}, worker, size)});
  for (int round = 0; round < 40; ++round) {
    const auto communicators = make_thread_communicators(size);
    std::atomic<int> lent = 0;
    const auto work = [&](Communicator &c) {
      std::vector<double> mine(rows * cols, 1.0);
      ++lent;
      try {
        c.allgather_rows({mine.data(), ValueType::f64, rows, cols, cols}, owned);
        c.barrier();
      } catch (const WorkerAborted &) {
      }
      EXPECT_EQ(std::count(mine.begin(), mine.end(), 0.0), 0) << "rows that their worker had ended";
      std::fill(mine.begin(), mine.end(), 0.0);
    };
    std::vector<std::jthread> threads;
    for (const auto &c : communicators)
      threads.emplace_back([&work, &c] { work(*c); });
    while (lent < size)
      std::this_thread::yield();
    for (volatile int pause = 0; pause < round * 2000;)
      pause = pause + 1;
    communicators.front()->abort();
  }
}

std::vector<Workers> kinds() {
  std::vector<Workers> all;
  for (const int size : {2, 3, 4, 7})
    for (const By by : {By::threads, By::staged, By::peer, By::functions, By::workers})
      all.push_back({size, by});
  const char *devices = std::getenv("TD_TEST_DEVICES");
  std::istringstream words(devices == nullptr ? "" : devices);
  for (std::string word; words >> word;)
    if (word.find_first_of("@/") == std::string::npos && (word.find(',') != std::string::npos || word == "cuda:all"))
      for (const By by : {By::staged, By::peer, By::nccl})
        all.push_back({0, by, word});
  return all;
}

std::string kind_name(const testing::TestParamInfo<Workers> &info) {
  const Workers &w = info.param;
  std::string name = w.devices.empty() ? std::to_string(w.size) + "_workers" : w.devices;
  for (char &c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0)
      c = '_';
  return name + "_" +
         (w.by == By::threads   ? "threads"
          : w.by == By::staged  ? "staged"
          : w.by == By::peer    ? "peer"
          : w.by == By::nccl    ? "nccl"
          : w.by == By::workers ? "of_processes"
                                : "functions");
}

INSTANTIATE_TEST_SUITE_P(Of, Communicators, testing::ValuesIn(kinds()), kind_name);

TEST(Communicator, WhatIsWantedAndCannotBeIsRefused) {
  const auto one = kernels::reference::make_backend(), two = kernels::reference::make_backend();
  try {
    make_device_communicators({one.get(), two.get()}, Exchange::nccl);
    FAIL() << "a library that there is not";
  } catch (const Error &error) {
    EXPECT_EQ(error.status(), Status::backend_unavailable);
    EXPECT_NE(std::string(error.what()).find("option 'exchange' = \"nccl\": reference"), std::string::npos)
        << error.what();
  }
}

TEST(Communicator, OneWorkerIsAlone) {
  const auto c = make_self_communicator();
  double x[] = {3};
  c->allreduce_sum(x);
  c->allreduce_max(x);
  EXPECT_EQ(x[0], 3);
  const double partial[] = {1, 2, 3, 4};
  double out[] = {0, 0, 0, 0};
  c->reduce_rows({partial, ValueType::f64, 2, 2, 2}, {out, ValueType::f64, 2, 2, 2}, std::vector<Ranges>{{{0, 2}}});
  EXPECT_EQ(out[3], 4);
}

} // namespace
