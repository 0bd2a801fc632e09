#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "comm/communicator.hpp"
#include "kernels/reference/reference.hpp"

namespace {

using namespace td;

struct Workers {
  int size;
  bool staged; // by way of host memory, two or three rows of the matrices below at a time
};

/// Runs body(communicator) on threads.
template <class Body> void on_threads(const Workers &workers, Body &&body) {
  auto communicators = make_thread_communicators(workers.size);
  const auto device = kernels::reference::make_backend();
  for (auto &c : communicators)
    if (workers.staged)
      c = make_staged_communicator(*device, std::move(c), 20);
  std::vector<std::jthread> threads;
  for (const auto &c : communicators)
    threads.emplace_back([&body, &c] { body(*c); });
}

class ThreadsOf : public testing::TestWithParam<Workers> {};

TEST_P(ThreadsOf, SumsAndLargestAreTheSameEverywhere) {
  const int size = GetParam().size;
  on_threads(GetParam(), [&](Communicator &c) {
    for (int round = 0; round < 50; ++round) { // the barrier is used again and again
      double data[] = {1.0 + c.rank(), static_cast<double>(round)};
      c.allreduce_sum(data);
      EXPECT_EQ(data[0], size * (size + 1) / 2);
      EXPECT_EQ(data[1], size * round);
      double largest[] = {static_cast<double>(c.rank()), -static_cast<double>(c.rank())};
      c.allreduce_max(largest);
      EXPECT_EQ(largest[0], size - 1);
      EXPECT_EQ(largest[1], 0);
    }
  });
}

TEST_P(ThreadsOf, RowsAreReducedAndGathered) {
  const int size = GetParam().size;
  constexpr i64 rows = 5;
  std::vector<Ranges> owned(static_cast<std::size_t>(size)); // some own nothing when size > rows
  for (i64 i = 0; i < rows; ++i)
    owned[static_cast<std::size_t>(i % size)].push_back({i, i + 1});
  on_threads(GetParam(), [&](Communicator &c) {
    std::vector<float> a(rows * 3, -1.0F); // 2 columns, ld 3
    const Matrix m{a.data(), ValueType::f32, rows, 2, 3};
    for (i64 i = 0; i < rows; ++i) {
      for (i64 r = 0; r < 2; ++r)
        m.row<float>(i)[r] = static_cast<float>(i * 10 + r + c.rank());
    }
    c.reduce_rows(m, m, owned[static_cast<std::size_t>(c.rank())]); // in place
    c.allgather_rows(m, owned);
    for (i64 i = 0; i < rows; ++i) {
      for (i64 r = 0; r < 2; ++r)
        EXPECT_EQ(m.row<float>(i)[r],
                  static_cast<float>(size * (i * 10 + r) + static_cast<i64>(size * (size - 1) / 2)));
      EXPECT_EQ(a[static_cast<std::size_t>(i * 3 + 2)], -1.0F) << "padding was written";
    }
  });
}

TEST_P(ThreadsOf, BroadcastComesFromTheFirst) {
  on_threads(GetParam(), [&](Communicator &c) {
    int number = 100 + c.rank();
    c.broadcast(&number, sizeof number);
    EXPECT_EQ(number, 100);
  });
}

TEST_P(ThreadsOf, AbortFreesThoseWhoWaitAndThoseWhoCome) {
  const int size = GetParam().size;
  std::atomic<int> freed = 0;
  on_threads(GetParam(), [&](Communicator &c) {
    if (c.rank() == size - 1) {
      c.abort();
      return;
    }
    try {
      c.barrier();
    } catch (const WorkerAborted &) {
      ++freed;
    }
    EXPECT_THROW(c.barrier(), WorkerAborted);
  });
  EXPECT_EQ(freed, size - 1);
}

INSTANTIATE_TEST_SUITE_P(Communicator, ThreadsOf,
                         testing::Values(Workers{2, false}, Workers{3, false}, Workers{4, false}, Workers{7, false},
                                         Workers{2, true}, Workers{3, true}, Workers{7, true}));

TEST(Communicator, OneWorkerIsAlone) {
  const auto c = make_self_communicator();
  double x[] = {3};
  c->allreduce_sum(x);
  c->allreduce_max(x);
  EXPECT_EQ(x[0], 3);
  const double partial[] = {1, 2, 3, 4};
  double out[] = {0, 0, 0, 0};
  c->reduce_rows({partial, ValueType::f64, 2, 2, 2}, {out, ValueType::f64, 2, 2, 2}, Ranges{{0, 2}});
  EXPECT_EQ(out[3], 4);
}

} // namespace
