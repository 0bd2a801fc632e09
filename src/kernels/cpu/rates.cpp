// What this machine can do, measured with the loops that the kernels are made of.

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include <pthread.h>

#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu_model.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 rank = 32;
constexpr i64 near_rows = near_bytes / (rank * 8);
constexpr i64 middle_rows = middle_bytes / (rank * 8);
constexpr i64 least_far_rows = i64{1} << 16; // of each thread: 16 MiB
constexpr i64 all_far_rows = i64{1} << 19;   // 128 MiB: more than most third-level caches
constexpr i64 fetches = i64{1} << 14;        // of rows: a tenth of a millisecond
constexpr i64 products = 8;                  // of 64 x 256 by 256 x 32
constexpr int least_rounds = 3;
constexpr double longest = 0.05; // seconds

/// Keeps the least of the seconds that body(thread) takes on the slowest thread. Each thread's own time counts: new
/// threads are at first woken on one core, and wait there for each other for milliseconds.
template <class Body> void time(double &least, int threads, Body &&body) {
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  parallel(threads, [&](int thread, int count) {
    for (int t = thread; t < threads; t += count) {
      const auto begin = Clock::now();
      body(t);
      seconds[static_cast<std::size_t>(t)] = seconds_since(begin);
    }
  });
  const double slowest = std::max(*std::max_element(seconds.begin(), seconds.end()), 1e-9);
  least = least == 0 ? slowest : std::min(least, slowest);
}

class Measurement {
public:
  static i64 far_rows(int threads) {
    return std::max(least_far_rows, static_cast<i64>(std::bit_floor(static_cast<u64>(all_far_rows / threads))));
  }
  static i64 bytes(int threads) { return threads * (far_rows(threads) + 64) * rank * static_cast<i64>(sizeof(double)); }

  explicit Measurement(int threads)
      : threads_(threads), far_rows_(far_rows(threads)), rows_(threads * far_rows_ * rank, "rows to measure with"),
        sums_(threads * 64 * rank, "sums to measure with") {
    parallel(threads_, [&](int thread, int count) { // each thread first touches its own
      for (int t = thread; t < threads_; t += count) {
        std::fill_n(rows_.data() + t * far_rows_ * rank, far_rows_ * rank, 1.0);
        std::fill_n(sums_.data() + t * 64 * rank, 64 * rank, 0.0);
      }
    });
  }

  /// Round after round, so that what disturbs for a while does not disturb all of one measurement.
  Rates run() {
    double read_seconds = 0, near_seconds = 0, middle_seconds = 0, far_seconds = 0, product_seconds = 0;
    const auto begin = Clock::now();
    for (int round = 0; round < least_rounds || seconds_since(begin) < longest; ++round) {
      time(read_seconds, threads_, [&](int t) { read(t); });
      time(near_seconds, threads_, [&](int t) { fetch(t, near_rows); });
      time(middle_seconds, threads_, [&](int t) { fetch(t, middle_rows); });
      time(far_seconds, threads_, [&](int t) { fetch(t, far_rows_); });
      time(product_seconds, threads_, [&](int t) { multiply(t); });
    }
    const double fetched = static_cast<double>(threads_) * fetches * rank * 8;
    const double operations = static_cast<double>(threads_) * products * 2 * 64 * 256 * rank;
    return {static_cast<double>(rows_.bytes()) / read_seconds, fetched / near_seconds, fetched / middle_seconds,
            fetched / far_seconds, operations / product_seconds};
  }

private:
  double *rows(int t) { return rows_.data() + t * far_rows_ * rank; }
  double *sums(int t) { return sums_.data() + t * 64 * rank; }

  /// Sums of all rows in order.
  void read(int t) {
    walk(
        t, far_rows_, [](i64 k) { return k; }, far_rows_);
  }
  /// Sums of rows in no order: an odd factor and a power of two visit all.
  void fetch(int t, i64 among) {
    walk(
        t, fetches, [among](i64 k) { return (k * 40503 + (k >> 5)) & (among - 1); }, among);
  }

  template <class RowOf> void walk(int t, i64 count, RowOf &&row_of, i64 among) {
    std::array<double, simd::batch_size> values;
    values.fill(0.5);
    std::array<simd::Index, simd::index_length> index;
    const double *factor = rows(t);
    simd::RowProducts<double> x;
    x.values = values.data();
    x.factors = 1;
    x.factor = &factor;
    x.index = index.data();
    x.ld = rank;
    x.rank = rank;
    x.far = among > near_rows ? 1 : 0;
    std::array<simd::Run<double>, 8> runs;
    for (std::size_t run = 0; run < runs.size(); ++run)
      runs[run] = {static_cast<std::int32_t>(run * 64), static_cast<std::int32_t>(run * 64 + 64),
                   sums(t) + static_cast<i64>(run) * rank};
    for (i64 begin = 0; begin < count; begin += simd::batch_size) {
      for (i64 k = 0; k < simd::index_length; ++k)
        index[static_cast<std::size_t>(k)] = static_cast<simd::Index>(row_of((begin + k) % count));
      simd::sum_runs(x, runs, false);
    }
  }

  void multiply(int t) {
    simd::Product<double> p;
    p.a = rows(t);
    p.a_row = 256;
    p.a_depth = 1;
    p.b = rows(t) + 64 * 256;
    p.b_ld = rank;
    p.c = sums(t);
    p.c_ld = rank;
    p.rows = 64;
    p.depth = 256;
    p.columns = rank;
    for (i64 k = 0; k < products; ++k)
      simd::add_product(p);
  }

  int threads_;
  i64 far_rows_;
  Buffer<double> rows_;
  Buffer<double> sums_;
};

std::mutex mutex;

// A child of fork finds it unlocked, and what it guards whole, whatever other threads were doing.
[[maybe_unused]] const int held_over_forks =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });

} // namespace

// They are measured in less than a tenth of a second, and kept; not known while too little memory is free for rows that
// no cache holds. More threads than processors share these: they are no faster, and each needs rows of its own.
Rates CpuBackend::rates() const {
  const int threads = std::min(threads_, available_threads());
  static std::map<int, Rates> known;
  const std::lock_guard lock(mutex);
  const auto at = known.find(threads);
  if (at != known.end())
    return at->second;
  if (available_memory().value_or(std::numeric_limits<i64>::max()) / 2 < Measurement::bytes(threads))
    return {};
  const Rates rates = Measurement(threads).run(); // a measurement that fails is made again by the next who asks
  known.emplace(threads, rates);
  return rates;
}

} // namespace td::kernels::cpu
