// The threads that work for one calling thread in its parallel regions.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "core/clock.hpp"
#include "core/pace.hpp"

namespace td {

/// What the threads of a region do: body(closure, thread, count) for every thread = 0 .. count - 1.
struct Region {
  void (*body)(void *closure, int thread, int count);
  void *closure;
  int count;
  std::mutex mutex;
  std::exception_ptr error; // the first one
  bool timed = false;
  std::atomic<std::int64_t> processor_nanoseconds{0}; // of all parts, if timed

  void run(int thread) noexcept;
  /// Whether this thread works on a part of a region, which then runs what it calls alone.
  static bool on_this_thread() noexcept;
};

/// Starts threads as regions need them and keeps them for the next region: they look out for it for some microseconds,
/// which is what a region costs then, and sleep after that. One calling thread's regions never wait for another's.
class Team {
public:
  Team();
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;
  ~Team();

  /// Starts threads until with the calling one there are `count`, and gives how many there are. They are fewer where
  /// the system lets no more be started (RLIMIT_NPROC, a limit of a control group, no address space for a stack).
  int grow(int count);

  /// Runs a region of at most grow()'s count, and returns when all of it is done. Whoever is free takes a part that
  /// nobody has begun: a thread that the system does not let run, because others need the processors, holds nobody up.
  /// Where threads that have begun are not let run, the calling thread does all for a while (core/pace.hpp).
  void run(Region &region) noexcept;

private:
  struct Worker;

  void forget_if_forked() noexcept;
  bool add_worker();
  void bind(int count) noexcept;
  bool run_together(Region &region) noexcept;

  std::vector<std::unique_ptr<Worker>> workers_; // the thread of a region's part k is workers_[k - 1]
  unsigned forks_;                               // of this process when the workers were started
  Pace pace_;
  int bound_for_ = 0;           // threads of a region that places were given for
  Clock::time_point try_again_; // when threads could not be started
};

/// Threads that were wanted and those that could be started, where they were fewer since this was last asked.
struct alignas(8) ThreadShortage { // one atomic word
  int wanted = 0;
  int started = 0;
};
ThreadShortage take_thread_shortage() noexcept;

} // namespace td
