#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/communicator.hpp"
#include "comm/transfers.hpp"
#include "core/rows.hpp"

namespace td {

namespace {

/// What the workers of one computation share: a barrier that can be used again and again, and for each worker the
/// place of the array that it lends to the others until all have read.
class ThreadGroup {
public:
  explicit ThreadGroup(int size) : lent_(static_cast<std::size_t>(size)) {}

  int size() const noexcept { return static_cast<int>(lent_.size()); }

  /// `reads`: all who leave then read what was lent.
  void wait(bool reads = false) {
    std::unique_lock lock(mutex_);
    if (aborted_)
      throw WorkerAborted{};
    const u64 round = round_;
    if (++arrived_ == lent_.size()) {
      arrived_ = 0;
      ++round_;
      reading_ = reads ? lent_.size() : 0;
      changed_.notify_all();
      return;
    }
    lock.unlock();
    look_out(round);
    lock.lock();
    changed_.wait(lock, [&] { return aborted_ || round_ != round; });
    if (round_ == round) // those whose round was complete go on, and learn of the abort at the next barrier
      throw WorkerAborted{};
  }

  void abort() noexcept {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }

  /// While one lives its worker reads what all have lent. It ends when all have read, also where one of them fails:
  /// what a worker has lent may end with it.
  class Reading {
  public:
    Reading(ThreadGroup &group, int rank, ConstMatrix a) : group_(group) {
      group.lent_[static_cast<std::size_t>(rank)] = a;
      group.wait(true);
    }
    Reading(const Reading &) = delete;
    Reading &operator=(const Reading &) = delete;
    ~Reading() {
      std::unique_lock lock(group_.mutex_);
      if (--group_.reading_ == 0)
        group_.changed_.notify_all();
      group_.changed_.wait(lock, [&] { return group_.reading_ == 0; });
    }
    const std::vector<ConstMatrix> &lent() const noexcept { return group_.lent_; }

  private:
    ThreadGroup &group_;
  };

private:
  /// Looks for a while whether all have come: to sleep and be woken takes longer than workers of devices are apart,
  /// which only ask for work.
  void look_out(u64 round) const {
    constexpr std::chrono::microseconds patience(20);
    const auto until = std::chrono::steady_clock::now() + patience;
    while (round_.load(std::memory_order_relaxed) == round && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  std::size_t reading_ = 0;
  std::atomic<u64> round_ = 0; // changed under the mutex
  bool aborted_ = false;
  std::vector<ConstMatrix> lent_; // ordered by the barriers, not by the mutex
};

class ThreadCommunicator final : public Communicator {
public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return group_->size(); }
  void barrier() override { group_->wait(); }

  void allreduce_sum(std::span<double> data) override {
    allreduce(data, [](double a, double b) { return a + b; });
  }
  void allreduce_max(std::span<double> data) override {
    allreduce(data, [](double a, double b) { return b > a || std::isnan(b) ? b : a; });
  }

  // out may be partial: each worker writes only its own rows, which no other one reads in this worker's array.
  void reduce_rows(ConstMatrix partial, Matrix out, std::span<const Ranges> owned) override {
    const ThreadGroup::Reading all(*group_, rank_, partial);
    for (const Range &rows : owned[static_cast<std::size_t>(rank_)])
      dispatch(out.type, [&](auto zero) { add_up<decltype(zero)>(all.lent(), rows, out); });
  }

  void allgather_rows(Matrix a, std::span<const Ranges> owned) override {
    const ThreadGroup::Reading all(*group_, rank_, a);
    for (std::size_t k = 0; k < owned.size(); ++k) {
      if (static_cast<int>(k) == rank_)
        continue;
      for (const Range &rows : owned[k])
        copy_rows(all.lent()[k], a, rows);
    }
  }

  void exchange(const kernels::Transfers &sent, const kernels::Transfers &received) override {
    const ThreadGroup::Reading all(*group_, rank_, {&sent, ValueType::f64, 0, 0, 0});
    std::vector<Offered> offered;
    for (const ConstMatrix &other : all.lent())
      offered.emplace_back(*static_cast<const kernels::Transfers *>(other.data), rank_);
    for (const kernels::Transfer &to : received)
      std::memcpy(to.memory, offered[static_cast<std::size_t>(to.worker)].take(to).memory,
                  static_cast<std::size_t>(to.bytes));
  }

  void broadcast(void *data, i64 bytes) override {
    const ThreadGroup::Reading all(*group_, rank_, {data, ValueType::f64, 0, 0, 0});
    if (rank_ != 0)
      std::memcpy(data, all.lent().front().data, static_cast<std::size_t>(bytes));
  }

  void abort() noexcept override { group_->abort(); }

private:
  template <class T> static void add_up(const std::vector<ConstMatrix> &lent, Range rows, Matrix out) {
    std::vector<double> sums(static_cast<std::size_t>(out.cols));
    for (i64 i = rows.begin; i < rows.end; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (const ConstMatrix &other : lent) {
        const T *row = other.row<T>(i);
        for (std::size_t r = 0; r < sums.size(); ++r)
          sums[r] += static_cast<double>(row[r]);
      }
      std::transform(sums.begin(), sums.end(), out.row<T>(i), [](double x) { return static_cast<T>(x); });
    }
  }

  template <class Op> void allreduce(std::span<double> data, Op op) {
    const auto count = static_cast<i64>(data.size());
    std::vector<double> result(data.size());
    {
      const ThreadGroup::Reading all(*group_, rank_, {data.data(), ValueType::f64, 1, count, count});
      for (std::size_t i = 0; i < data.size(); ++i) {
        double x = all.lent().front().row<double>(0)[i];
        for (std::size_t k = 1; k < all.lent().size(); ++k)
          x = op(x, all.lent()[k].row<double>(0)[i]);
        result[i] = x;
      }
    }
    std::copy(result.begin(), result.end(), data.begin());
  }

  std::shared_ptr<ThreadGroup> group_;
  int rank_;
};

} // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int size) {
  const auto group = std::make_shared<ThreadGroup>(size);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank)
    communicators.push_back(std::make_unique<ThreadCommunicator>(group, rank));
  return communicators;
}

} // namespace td
