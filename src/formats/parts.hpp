// Fixed parts of a range: what is computed does not depend on how many threads there really are.
#pragma once

#include "core/parallel.hpp"

namespace td::formats {

/// Entries that one thread should have before another is worth starting: below this a pass costs less than a fork.
inline constexpr i64 grain = i64{1} << 14;

/// Number of parts that n items are worth dividing into.
inline int parts_for(i64 n, int threads) noexcept {
  const i64 useful = n / grain + 1;
  return useful < threads ? static_cast<int>(useful) : (threads < 1 ? 1 : threads);
}

/// Calls body(part, range) for the parts of [0, n).
template <class Body> void for_parts(i64 n, int parts, Body &&body) {
  parallel(parts, [&](int thread, int count) {
    for (int part = thread; part < parts; part += count)
      body(part, part_of({0, n}, part, parts));
  });
}

} // namespace td::formats
