// Rows of matrices as ranges of bytes, and copies of them in host memory.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/views.hpp"

namespace td {

/// Both matrices have the same type and number of columns.
inline void copy_rows(ConstMatrix from, Matrix to, Range rows) {
  const i64 row_bytes = to.cols * size_of(to.type);
  const bool together = from.ld == to.cols && to.ld == to.cols;
  const i64 at_once = together ? std::max<i64>(rows.size(), 1) : 1;
  for (i64 i = rows.begin; i < rows.end; i += at_once)
    std::memcpy(to.slice(i, i + 1).data, from.slice(i, i + 1).data, static_cast<std::size_t>(at_once * row_bytes));
}

inline i64 rows_of(const Ranges &ranges) {
  i64 rows = 0;
  for (const Range &range : ranges)
    rows += range.size();
  return rows;
}

/// The part of the rows of some ranges, counted one after the other.
inline Ranges nth_rows(const Ranges &ranges, Range part) {
  Ranges some;
  i64 before = 0;
  for (const Range &range : ranges) {
    const Range within{std::max(part.begin - before, i64{0}), std::min(part.end - before, range.size())};
    if (within.begin < within.end)
      some.push_back({range.begin + within.begin, range.begin + within.end});
    before += range.size();
  }
  return some;
}

/// Calls f(rows, bytes) for rows of the ranges that follow one another in memory without a gap.
template <class F> void for_together(const ConstMatrix &a, const Ranges &ranges, F &&f) {
  const i64 row_bytes = a.cols * size_of(a.type);
  for (const Range &range : ranges) {
    const i64 step = a.ld == a.cols ? range.size() : 1;
    for (i64 i = range.begin; i < range.end; i += step)
      f(Range{i, i + step}, step * row_bytes);
  }
}

} // namespace td
