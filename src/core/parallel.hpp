// Every parallel region of the library goes through `parallel`. It carries exceptions out of the region and works with
// fewer threads where the system lets no more be started. OpenMP is asked how many threads the process may use and
// where they are to be bound; the threads are td's own (core/team.hpp).
#pragma once

#include <type_traits>
#include <utility>

#include "core/views.hpp"

namespace td {

namespace detail {
void run_parallel(int threads, void (*body)(void *closure, int thread, int count), void *closure);
}

/// Threads that the process may use now (its CPU affinity and OMP_NUM_THREADS).
int available_threads() noexcept;

/// Runs body(thread, count) on up to `threads` threads at once; count is how many there really are, so a body must
/// divide its work by count. The first exception of any thread is rethrown here after all have ended.
template <class Body> void parallel(int threads, Body &&body) {
  using Closure = std::remove_reference_t<Body>;
  detail::run_parallel(
      threads, [](void *closure, int thread, int count) { (*static_cast<Closure *>(closure))(thread, count); },
      const_cast<void *>(static_cast<const void *>(&body)));
}

/// Splits [0, size) into one contiguous range a thread, none smaller than `grain` unless it is the only one.
template <class Body> void parallel_ranges(int threads, i64 size, i64 grain, Body &&body) {
  const i64 useful = size / (grain > 0 ? grain : 1);
  const int want = useful < threads ? (useful < 1 ? 1 : static_cast<int>(useful)) : threads;
  parallel(want, [&](int thread, int count) {
    const Range r = part_of({0, size}, thread, count);
    if (r.size() > 0)
      body(r);
  });
}

/// A grain for parallel_ranges: rows of so many columns that are worth a thread.
inline i64 rows_worth_a_thread(i64 columns) noexcept { return (i64{1} << 16) / (columns > 0 ? columns : 1) + 1; }

} // namespace td
