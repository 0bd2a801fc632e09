#include "core/parallel.hpp"

#include <algorithm>
#include <utility>

#include <omp.h>

#include "core/team.hpp"

namespace td {

namespace {

/// The calling thread's team, which ends with the thread. What still calls td then (destructors of static objects) gets
/// a new one.
thread_local Team *team = nullptr;

struct EndOfThread {
  bool armed = false;
  ~EndOfThread() { delete std::exchange(team, nullptr); }
};
thread_local EndOfThread end_of_thread;

Team &team_of_this_thread() {
  if (team == nullptr) {
    team = new Team;
    end_of_thread.armed = true; // makes it, and so has it ended
  }
  return *team;
}

/// Where OpenMP would not fork again because the caller is in a parallel region of its own, td does not either.
bool caller_is_parallel() noexcept {
  return omp_get_active_level() > 0 && omp_get_active_level() >= omp_get_max_active_levels();
}

} // namespace

namespace detail {

void run_parallel(int threads, void (*body)(void *, int, int), void *closure) {
  if (threads > 1 && !Region::on_this_thread() && !caller_is_parallel()) {
    Team &workers = team_of_this_thread();
    threads = workers.grow(std::min(threads, omp_get_thread_limit()));
    if (threads > 1) {
      Region region{body, closure, threads, {}, {}, false, 0};
      workers.run(region);
      if (region.error)
        std::rethrow_exception(region.error);
      return;
    }
  }
  body(closure, 0, 1);
}

} // namespace detail

int available_threads() noexcept {
  const int limit = omp_get_max_threads();
  const int cores = omp_get_num_procs();
  const int n = limit < cores ? limit : cores;
  return n < 1 ? 1 : n;
}

} // namespace td
