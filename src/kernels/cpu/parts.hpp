// Sums that are the same for any number of threads: the work is cut into parts that do not depend on it, any thread
// takes any part, and the parts' sums are added in order.
#pragma once

#include <algorithm>
#include <atomic>

#include "core/buffer.hpp"
#include "core/parallel.hpp"

namespace td::kernels::cpu {

/// Calls body(item) for each item in [0, items), each once, whichever thread is free.
template <class Body> void for_each_item(int threads, i64 items, Body &&body) {
  std::atomic<i64> next{0};
  parallel(static_cast<int>(std::min<i64>(threads, std::max<i64>(items, 1))), [&](int, int) {
    for (i64 item = next.fetch_add(1); item < items; item = next.fetch_add(1))
      body(item);
  });
}

/// How many parts `size` items of work make: at least `grain` in each, at most `most`.
constexpr i64 parts_of(i64 size, i64 grain, i64 most) { return std::clamp<i64>(size / grain, 1, most); }

/// out[0 .. width) := sum over parts of what body(part, sum) adds to its own zeroed sum[0 .. width).
template <class Body> void sum_parts(int threads, i64 parts, i64 width, double *out, Body &&body) {
  auto sums = Buffer<double>::zeros(parts * width, "partial sums");
  for_each_item(threads, parts, [&](i64 part) { body(part, sums.data() + part * width); });
  std::fill_n(out, width, 0.0);
  for (i64 part = 0; part < parts; ++part)
    for (i64 k = 0; k < width; ++k)
      out[k] += sums[part * width + k];
}

} // namespace td::kernels::cpu
