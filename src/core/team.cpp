#include "core/team.hpp"

#include <atomic>
#include <climits>
#include <cstdint>
#include <utility>

#include <hwy/cache_control.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace td {

namespace {

/// How a worker stands: what it waits for or does, and whether the other side sleeps until that changes.
enum State : std::uint32_t {
  idle,    // looks out for a region
  asleep,  // idle, and wants to be woken
  posted,  // has a part that it has not begun; the calling thread may take it back
  running, // works on its part
  awaited, // running, and the calling thread wants to be woken
  stop
};

// Regions follow each other within microseconds, but for what the calling thread does alone in between. A thread that
// sleeps takes about 50 microseconds until it runs, so looking out for longer than that costs more than it can save.
constexpr std::chrono::microseconds patience{50};
constexpr int looks_a_time = 16;

// Enough for every kernel and for what the loader puts on a stack; less than RLIMIT_STACK, which may be any size.
constexpr std::size_t stack_bytes = std::size_t{2} << 20;

/// Looks for a while whether state is still `value`; false if it is.
bool changes_soon(const std::atomic<std::uint32_t> &state, std::uint32_t value) noexcept {
  const auto begin = Clock::now();
  do {
    for (int look = 0; look < looks_a_time; ++look) {
      if (state.load(std::memory_order_acquire) != value)
        return true;
      hwy::Pause();
    }
  } while (Clock::now() - begin < patience);
  return false;
}

/// Returns when state is no longer `value`: sleeping after a while, as `sleeping`, which whoever changes it sees.
void wait_while(std::atomic<std::uint32_t> &state, std::uint32_t value, std::uint32_t sleeping) noexcept {
  if (changes_soon(state, value))
    return;
  std::uint32_t seen = value;
  if (state.compare_exchange_strong(seen, sleeping))
    seen = sleeping;
  while (seen == sleeping) {
    state.wait(sleeping);
    seen = state.load(std::memory_order_acquire);
  }
}

thread_local bool working = false; // on a part of a region

/// How often this process is a child of fork: threads of the parent are not in the child.
std::atomic<unsigned> forks{0};
[[maybe_unused]] const int forks_are_counted =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

std::atomic<ThreadShortage> shortage{ThreadShortage{}};

/// Binds a thread to one of OpenMP's places.
void bind_to_place(pthread_t thread, int place) noexcept {
  int processors[CPU_SETSIZE];
  const int n = omp_get_place_num_procs(place);
  if (n < 1 || n > CPU_SETSIZE)
    return;
  omp_get_place_proc_ids(place, processors);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int k = 0; k < n; ++k)
    if (processors[k] >= 0 && processors[k] < CPU_SETSIZE)
      CPU_SET(static_cast<std::size_t>(processors[k]), &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

/// What the calling thread has had of the processors.
std::int64_t processor_time() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

} // namespace

void Region::run(int thread) noexcept {
  working = true;
  const std::int64_t begin = timed ? processor_time() : 0;
  try {
    body(closure, thread, count);
  } catch (...) {
    const std::lock_guard lock(mutex);
    if (!error)
      error = std::current_exception();
  }
  if (timed)
    processor_nanoseconds.fetch_add(processor_time() - begin, std::memory_order_relaxed);
  working = false;
}

bool Region::on_this_thread() noexcept { return working; }

struct alignas(64) Team::Worker { // a cache line of its own: each side looks at it while it waits
  std::atomic<std::uint32_t> state{idle};
  Region *region = nullptr;
  int part = 0;
  pthread_t thread{};

  static void *serve(void *worker) noexcept {
    auto &self = *static_cast<Worker *>(worker);
    while (true) {
      wait_while(self.state, idle, asleep);
      std::uint32_t seen = posted;
      if (!self.state.compare_exchange_strong(seen, running)) {
        if (seen == stop)
          return nullptr;
        continue; // the calling thread took the part back
      }
      self.region->run(self.part);
      if (self.state.exchange(idle) == awaited)
        self.state.notify_one();
    }
  }

  void change_to(State next) noexcept {
    if (state.exchange(next) == asleep)
      state.notify_one();
  }
  bool take_back() noexcept {
    std::uint32_t seen = posted;
    return state.compare_exchange_strong(seen, idle);
  }
  void join_region() noexcept { wait_while(state, running, awaited); }
};

Team::Team() : forks_(forks.load(std::memory_order_relaxed)) {}

Team::~Team() {
  forget_if_forked();
  for (const auto &worker : workers_)
    worker->change_to(stop);
  for (const auto &worker : workers_)
    pthread_join(worker->thread, nullptr);
}

void Team::forget_if_forked() noexcept {
  const unsigned now = forks.load(std::memory_order_relaxed);
  if (forks_ == now)
    return;
  workers_.clear();
  forks_ = now;
  bound_for_ = 0;
  try_again_ = {};
}

/// Signals are for the caller's threads, but for those that a thread's own instructions raise, and a profiler's.
bool Team::add_worker() {
  if (workers_.size() == workers_.capacity())
    workers_.reserve(2 * workers_.size() + 1);
  auto worker = std::make_unique<Worker>();
  worker->part = static_cast<int>(workers_.size()) + 1;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return false;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  sigset_t blocked;
  sigset_t callers;
  sigfillset(&blocked);
  for (const int raised : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF})
    sigdelset(&blocked, raised);
  pthread_sigmask(SIG_SETMASK, &blocked, &callers);
  const int error = pthread_create(&worker->thread, &attributes, Worker::serve, worker.get());
  pthread_sigmask(SIG_SETMASK, &callers, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return false;
  workers_.push_back(std::move(worker));
  return true;
}

int Team::grow(int count) {
  forget_if_forked();
  const auto size = [&] { return static_cast<int>(workers_.size()) + 1; };
  if (size() < count && (try_again_ == Clock::time_point{} || Clock::now() >= try_again_)) {
    try_again_ = {};
    while (size() < count && add_worker()) {
    }
    if (size() < count) {
      try_again_ = Clock::now() + std::chrono::seconds(1);
      shortage.store({count, size()}, std::memory_order_relaxed);
    }
  }
  return size() < count ? size() : count;
}

/// Threads stand where OpenMP's would with OMP_PROC_BIND: on places that follow the calling thread's one by one
/// (close), or as far from each other as they can (spread). They would else all inherit the calling thread's place.
void Team::bind(int count) noexcept {
  const omp_proc_bind_t policy = omp_get_proc_bind();
  const int places = policy == omp_proc_bind_false ? 0 : omp_get_num_places();
  const int first = places == 0 ? -1 : omp_get_place_num();
  if (first < 0)
    return;
  for (int k = 1; k < count; ++k) {
    int step = 0; // with the calling thread: omp_proc_bind_master
    if (policy == omp_proc_bind_spread || count > places)
      step = static_cast<int>(static_cast<long long>(k) * places / count);
    else if (policy != omp_proc_bind_master)
      step = k;
    bind_to_place(workers_[static_cast<std::size_t>(k) - 1]->thread, (first + step) % places);
  }
}

void Team::run(Region &region) noexcept {
  const Clock::time_point begin = Clock::now();
  const Pace::Way way = pace_.next(begin);
  region.timed = way.timed;
  bool shared = false;
  if (way.alone) {
    for (int part = 0; part < region.count; ++part)
      region.run(part);
  } else {
    shared = run_together(region);
  }
  if (way.timed && (way.alone || shared)) { // else it tells nothing of the others
    const Clock::time_point end = Clock::now();
    const double processors = 1e-9 * static_cast<double>(region.processor_nanoseconds.load(std::memory_order_relaxed));
    pace_.took(processors, std::chrono::duration<double>(end - begin).count(), end);
  }
}

/// Whether another thread has done a part of it.
bool Team::run_together(Region &region) noexcept {
  const auto others = static_cast<std::size_t>(region.count) - 1;
  if (region.count != bound_for_) {
    bind(region.count);
    bound_for_ = region.count;
  }
  for (std::size_t k = 0; k < others; ++k) {
    workers_[k]->region = &region;
    workers_[k]->change_to(posted);
  }
  region.run(0);
  std::size_t taken = 0;
  for (std::size_t k = others; k-- > 0;) { // those that were woken last are the least likely to have begun
    if (workers_[k]->take_back()) {
      region.run(static_cast<int>(k) + 1);
      ++taken;
    }
  }
  for (std::size_t k = 0; k < others; ++k)
    workers_[k]->join_region();
  return taken < others;
}

ThreadShortage take_thread_shortage() noexcept { return shortage.exchange({}, std::memory_order_relaxed); }

} // namespace td
