// Work on long arrays by all cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace cli {

/// Calls f(begin, end) for ranges that together are 0 .. n, on as many threads as the process may use. f must not
/// throw.
template <class F> void in_parallel(std::int64_t n, const F &f) {
  constexpr std::int64_t least = std::int64_t{1} << 14; // of a thread
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t threads = std::clamp(n / least, std::int64_t{1}, cores);
  std::vector<std::jthread> team;
  team.reserve(static_cast<std::size_t>(threads));
  for (std::int64_t k = 0; k < threads; ++k) {
    const std::int64_t begin = n / threads * k, end = k + 1 == threads ? n : n / threads * (k + 1);
    if (k + 1 < threads)
      try {
        team.emplace_back([&f, begin, end] { f(begin, end); });
        continue;
      } catch (const std::system_error &) { // no more threads to be had: this one does it
      }
    f(begin, end);
  }
}

} // namespace cli
