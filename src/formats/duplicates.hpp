// Entries at the same coordinates: neighbours after a sort.
#pragma once

#include <cmath>
#include <string>

#include "formats/formats.hpp"
#include "formats/runs.hpp"

namespace td::formats {

/// "(1, 2, 3)", from 0-based coordinates, in a caller's base.
std::string coordinate_text(std::span<const i64> coordinate, std::int32_t base);

/// Throws Status::index naming the first two of the caller's entries at that coordinate (0-based).
[[noreturn]] void refuse_duplicate(const EntriesView &entries, std::span<const i64> coordinate);

/// Throws Status::argument: the entries there have a sum outside the value type's range.
[[noreturn]] void refuse_sum(const EntriesView &entries, std::span<const i64> coordinate);

/// Sums value_of(k) over each run: in the order given, in f64, rounded once. Throws Status::argument for a sum outside
/// the value type's range; coordinate_of(k) gives entry k's 0-based coordinate for that text.
template <class T, class At, class ValueOf, class CoordinateOf>
ValueBuffer sum_runs(const Buffer<At> &begins, const EntriesView &entries, int threads, ValueOf &&value_of,
                     CoordinateOf &&coordinate_of) {
  const i64 runs = begins.size() - 1;
  ValueBuffer sums(value_type_of<T>, runs, "values");
  T *out = sums.as<T>();
  parallel_ranges(threads, runs, grain, [&](Range r) {
    for (i64 run = r.begin; run < r.end; ++run) {
      double sum = 0;
      for (i64 k = begins[run]; k < begins[run + 1]; ++k)
        sum += static_cast<double>(value_of(k));
      out[run] = static_cast<T>(sum);
    }
  });
  const i64 bad = first_found(runs, threads,
                              [&](Range r) { return first_bad(r, [&](i64 run) { return !std::isfinite(out[run]); }); });
  if (bad >= 0)
    refuse_sum(entries, coordinate_of(begins[bad]));
  return sums;
}

/// The first k of [0, n) for which same_as_before(k), or -1.
template <class Same> i64 first_repeat(i64 n, int threads, Same &&same_as_before) {
  return first_found(n, threads, [&](Range r) { return first_bad(r, same_as_before); });
}

} // namespace td::formats
