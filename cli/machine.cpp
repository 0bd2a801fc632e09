#include "machine.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <sched.h>

#include <fmt/format.h>

#include "median.hpp"
#include "vector_loops.hpp"

namespace cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds = 5;
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t steps = std::int64_t{1} << 22; // of multiply-adds: some milliseconds

/// OpenMP binds the main thread to its place (OMP_PROC_BIND) and new threads inherit that: where it is too narrow, ask
/// for all CPUs, of which the kernel gives those that the process may use.
void leave_place(int threads) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) >= threads)
    return;
  std::memset(&allowed, 0xff, sizeof allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);
}

/// Calls work(k) on threads k = 0 .. threads-1 at once, several times; median seconds from the first that began to the
/// last that ended.
double seconds_of(int threads, const std::function<void(int)> &work) {
  struct Span {
    Clock::time_point begin, end;
  };
  std::vector<std::vector<Span>> spans(static_cast<std::size_t>(threads), std::vector<Span>(rounds));
  std::barrier together(threads);
  const auto run = [&](int k) {
    leave_place(threads);
    for (Span &span : spans[static_cast<std::size_t>(k)]) {
      together.arrive_and_wait();
      span.begin = Clock::now();
      work(k);
      span.end = Clock::now();
    }
  };
  {
    std::vector<std::jthread> team;
    team.reserve(static_cast<std::size_t>(threads));
    try {
      for (int k = 0; k < threads; ++k)
        team.emplace_back(run, k);
    } catch (...) { // no more threads to be had: those that run shall not wait for the others
      for (auto missing = team.size(); missing < spans.size(); ++missing)
        together.arrive_and_drop();
      throw;
    }
  }
  std::vector<double> seconds;
  for (std::size_t r = 0; r < rounds; ++r) {
    Span all = spans.front()[r];
    for (const auto &of_thread : spans) {
      all.begin = std::min(all.begin, of_thread[r].begin);
      all.end = std::max(all.end, of_thread[r].end);
    }
    seconds.push_back(std::chrono::duration<double>(all.end - all.begin).count());
  }
  return median(std::move(seconds));
}

/// Size of a last-level cache, or 0 if the system does not say.
std::int64_t cache_bytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size"); // such as "32768K"
  std::int64_t size = 0;
  char unit = 0;
  return file >> size >> unit ? size * (unit == 'M' ? mebibyte : 1024) : 0;
}

} // namespace

Machine measure_machine(int threads) {
  Machine machine;
  machine.threads = threads;
  machine.repeats = rounds;
  machine.instructions = loops::instructions();
  // Four times what caches hold, so that little of it is met there again.
  machine.bytes = std::clamp(4 * cache_bytes() * threads, 256 * mebibyte, 2048 * mebibyte);
  const auto bytes = static_cast<double>(machine.bytes);
  const std::size_t part = static_cast<std::size_t>(machine.bytes) / sizeof(double) / static_cast<std::size_t>(threads);
  const auto memory = std::make_unique_for_overwrite<double[]>(part * static_cast<std::size_t>(threads));
  const auto part_of = [&](int k) { return memory.get() + part * static_cast<std::size_t>(k); };

  // The sums go where the compiler cannot see that nobody looks at them.
  std::vector<double> sums(static_cast<std::size_t>(threads));
  volatile double sink = 0;
  machine.write = bytes / seconds_of(threads, [&](int k) { loops::fill(part_of(k), part, 1.0); });
  machine.read =
      bytes / seconds_of(threads, [&](int k) { sums[static_cast<std::size_t>(k)] = loops::sum(part_of(k), part); });
  machine.copy = bytes / 2 / seconds_of(threads, [&](int k) {
                   std::memcpy(part_of(k), part_of(k) + part / 2, part / 2 * sizeof(double));
                 });
  const auto operations = static_cast<double>(steps) * threads;
  machine.f64 = operations * static_cast<double>(loops::operations_f64()) / seconds_of(threads, [&](int k) {
                  sums[static_cast<std::size_t>(k)] += loops::multiply_add_f64(steps);
                });
  machine.f32 = operations * static_cast<double>(loops::operations_f32()) / seconds_of(threads, [&](int k) {
                  sums[static_cast<std::size_t>(k)] += static_cast<double>(loops::multiply_add_f32(steps));
                });
  for (const double s : sums)
    sink = sink + s;
  return machine;
}

Json Machine::document() const {
  return {{"threads", threads},
          {"instructions", instructions},
          {"repeats", repeats},
          {"bytes", bytes},
          {"read_bytes_per_second", read},
          {"write_bytes_per_second", write},
          {"copy_bytes_per_second", copy},
          {"f64_operations_per_second", f64},
          {"f32_operations_per_second", f32}};
}

std::string Machine::describe() const {
  return fmt::format("{} {}, {}: read {:.1f}, write {:.1f}, copy {:.1f} GB/s; multiply-add {:.0f} GFLOP/s f64, {:.0f} "
                     "f32 (medians of {})",
                     threads, threads == 1 ? "thread" : "threads", instructions, read / 1e9, write / 1e9, copy / 1e9,
                     f64 / 1e9, f32 / 1e9, repeats);
}

} // namespace cli
