// Several workers in each of the processes that compute together, all of whom meet as processes of one worker do.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/processes.hpp"

namespace td {

/// The workers of this process, each a thread. What they bring to a function is put together here, and the first of
/// them calls the caller's function once for all: so only its thread, the caller's, is in functions of the caller's.
/// Sums are taken over the workers of a process, in their order, and then as the caller takes them.
class ProcessWorkers : public std::enable_shared_from_this<ProcessWorkers> {
public:
  /// All processes call it, each with the number of its workers.
  static std::shared_ptr<ProcessWorkers> make(std::shared_ptr<Processes> processes, int workers);
  ProcessWorkers(const ProcessWorkers &) = delete;
  ProcessWorkers &operator=(const ProcessWorkers &) = delete;

  /// Workers of this process, and of all.
  int size() const noexcept { return static_cast<int>(std::ssize(seats_)); }
  int total() const noexcept { return total_; }
  /// How a worker of this process meets all others; it serves one thread at a time.
  Processes &of(int worker) noexcept { return seats_[static_cast<std::size_t>(worker)]->processes; }
  std::shared_ptr<Processes> shared(int worker) { return {shared_from_this(), &of(worker)}; }

private:
  ProcessWorkers(std::shared_ptr<Processes> processes, std::vector<int> workers);

  /// What a worker brings to a function.
  struct Brought {
    double *data = nullptr; // all_reduce
    const void *sent = nullptr;
    void *received = nullptr;
    const i64 *sent_bytes = nullptr, *received_bytes = nullptr;
    void *bytes = nullptr; // broadcast
  };
  struct Seat {
    Seat(ProcessWorkers &all, int place, int first, std::span<const int> workers);
    ProcessWorkers &all;
    int place;
    Processes processes;
    Brought brought;
  };

  class Letters;

  /// Waits until all workers of this process have come; the first then calls work() for them, and all give what it
  /// gave.
  template <class Work> std::int32_t meet(Seat &seat, Brought mine, Work &&work);
  std::int32_t all_reduce(i64 count, Reduction how);
  std::int32_t all_to_all();
  std::int32_t broadcast(i64 bytes, int root);
  /// Whether it is so on no process.
  bool on_none(bool here, std::int32_t &code);
  /// Calls f(rank) for each worker of a process.
  template <class F> void for_workers_of(int process, F &&f) const;

  static std::int32_t reduce_here(double *data, i64 count, std::int32_t operation, void *user);
  static std::int32_t exchange_here(const void *sent, const i64 *sent_bytes, void *received, const i64 *received_bytes,
                                    void *user);
  static std::int32_t broadcast_here(void *data, i64 bytes, std::int32_t root, void *user);
  static void abort_here(std::int32_t status, void *user);

  std::shared_ptr<Processes> processes_; // whose functions are the caller's
  std::vector<int> workers_;             // [processes]
  int first_ = 0;                        // rank of this process's first worker
  int total_ = 0;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  i64 round_ = 0;
  std::int32_t code_ = 0; // of the last round
};

} // namespace td
