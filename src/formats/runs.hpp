// Runs of neighbouring entries that belong together, and the first entry with a property: both the same for any number
// of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "core/buffer.hpp"
#include "formats/parts.hpp"

namespace td::formats {

/// The beginnings of runs: every k with starts(k), which must hold for k = 0; then n, which must fit At.
template <class At = i64, class Starts> Buffer<At> run_begins(i64 n, int threads, const char *what, Starts &&starts) {
  const int parts = parts_for(n, threads);
  std::vector<i64> before(static_cast<std::size_t>(parts) + 1, 0);
  for_parts(n, parts, [&](int part, Range r) {
    i64 count = 0;
    for (i64 k = r.begin; k < r.end; ++k)
      count += starts(k) ? 1 : 0;
    before[static_cast<std::size_t>(part) + 1] = count;
  });
  for (std::size_t part = 1; part < before.size(); ++part)
    before[part] += before[part - 1];
  Buffer<At> begins(before.back() + 1, what);
  for_parts(n, parts, [&](int part, Range r) {
    i64 next = before[static_cast<std::size_t>(part)];
    for (i64 k = r.begin; k < r.end; ++k)
      if (starts(k))
        begins[next++] = static_cast<At>(k);
  });
  begins[before.back()] = static_cast<At>(n);
  return begins;
}

/// The smallest of what find(range) gives for parts of [0, n); find gives -1 for nothing, else the first in its range.
template <class Find> i64 first_found(i64 n, int threads, Find &&find) {
  const int parts = parts_for(n, threads);
  std::vector<i64> found(static_cast<std::size_t>(parts), -1);
  for_parts(n, parts, [&](int part, Range r) {
    if (r.size() > 0)
      found[static_cast<std::size_t>(part)] = find(r);
  });
  for (const i64 k : found) // parts are in order, so the first hit is the smallest
    if (k >= 0)
      return k;
  return -1;
}

/// The first k in r with bad(k), or -1. Blocks are first tested whole, without branches, so that the compiler can use
/// SIMD for the usual case that nothing is bad.
template <class Bad> i64 first_bad(Range r, Bad &&bad) {
  constexpr i64 block = 1024;
  for (i64 begin = r.begin; begin < r.end; begin += block) {
    const i64 end = std::min(begin + block, r.end);
    bool any = false;
    for (i64 k = begin; k < end; ++k)
      any |= bad(k);
    if (!any)
      continue;
    for (i64 k = begin; k < end; ++k)
      if (bad(k))
        return k;
  }
  return -1;
}

} // namespace td::formats
