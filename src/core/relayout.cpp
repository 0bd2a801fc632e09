#include "core/relayout.hpp"

#include <algorithm>
#include <cmath>

namespace td {

namespace {

// A block of rows of the tall side stays in cache while it is read along one direction and written along the other.
constexpr i64 row_block = 64;

template <class Body> void for_blocks(i64 rows, i64 cols, Body &&body) {
  for (i64 begin = 0; begin < rows; begin += row_block) {
    const i64 end = std::min(begin + row_block, rows);
    for (i64 r = 0; r < cols; ++r)
      for (i64 i = begin; i < end; ++i)
        body(i, r);
  }
}

} // namespace

void from_column_major(const void *from, i64 ld, Matrix to) {
  dispatch(to.type, [&](auto zero) {
    using T = decltype(zero);
    const T *a = static_cast<const T *>(from);
    for_blocks(to.rows, to.cols, [&](i64 i, i64 r) { to.row<T>(i)[r] = a[i + r * ld]; });
  });
}

void to_column_major(ConstMatrix from, void *to, i64 ld) {
  dispatch(from.type, [&](auto zero) {
    using T = decltype(zero);
    T *a = static_cast<T *>(to);
    for_blocks(from.rows, from.cols, [&](i64 i, i64 r) { a[i + r * ld] = from.row<T>(i)[r]; });
  });
}

std::optional<std::pair<i64, i64>> find_not_finite(ConstMatrix a) {
  return dispatch(a.type, [&](auto zero) -> std::optional<std::pair<i64, i64>> {
    using T = decltype(zero);
    for (i64 i = 0; i < a.rows; ++i)
      for (i64 r = 0; r < a.cols; ++r)
        if (!std::isfinite(a.row<T>(i)[r]))
          return std::pair{i, r};
    return std::nullopt;
  });
}

} // namespace td
