#include "core/parallel.hpp"

#include <exception>
#include <mutex>

#include <omp.h>

#if defined(__SANITIZE_THREAD__)
#define TD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TD_TSAN 1
#endif
#endif

#ifdef TD_TSAN
extern "C" void __tsan_acquire(void *);
extern "C" void __tsan_release(void *);
#define TD_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define TD_NO_TSAN
#endif

namespace td {

namespace {

struct Region {
  void (*body)(void *, int, int);
  void *closure;
  std::mutex mutex;
  std::exception_ptr error;
};

// Kept out of line so that its accesses are instrumented, unlike those of the function that holds the region.
__attribute__((noinline)) void run_one(Region &region, int thread, int count) noexcept {
#ifdef TD_TSAN
  __tsan_acquire(&region);
#endif
  try {
    region.body(region.closure, thread, count);
  } catch (...) {
    const std::lock_guard lock(region.mutex);
    if (!region.error)
      region.error = std::current_exception();
  }
#ifdef TD_TSAN
  __tsan_release(&region);
#endif
}

TD_NO_TSAN void fork_join(Region &region, int threads) {
#pragma omp parallel num_threads(threads)
  run_one(region, omp_get_thread_num(), omp_get_num_threads());
}

} // namespace

namespace detail {

void run_parallel(int threads, void (*body)(void *, int, int), void *closure) {
  if (threads <= 1) {
    body(closure, 0, 1);
    return;
  }
  Region region{body, closure, {}, {}};
#ifdef TD_TSAN
  __tsan_release(&region);
#endif
  fork_join(region, threads);
#ifdef TD_TSAN
  __tsan_acquire(&region);
#endif
  if (region.error)
    std::rethrow_exception(region.error);
}

} // namespace detail

int available_threads() noexcept {
  const int limit = omp_get_max_threads();
  const int cores = omp_get_num_procs();
  const int n = limit < cores ? limit : cores;
  return n < 1 ? 1 : n;
}

} // namespace td
