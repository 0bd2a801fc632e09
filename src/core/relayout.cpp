#include "core/relayout.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/parallel.hpp"

namespace td {

namespace {

// A block of rows of the tall side stays in cache while it is read along one direction and written along the other.
constexpr i64 row_block = 64;
constexpr i64 check_grain = i64{1} << 16; // numbers that are worth a thread

/// Calls body(k, row, column) for each element of the tall matrix.
template <class Body> void for_blocks(Range some, const i64 *rows, i64 cols, Body &&body) {
  for (i64 begin = some.begin; begin < some.end; begin += row_block) {
    const i64 end = std::min(begin + row_block, some.end);
    for (i64 r = 0; r < cols; ++r)
      for (i64 k = begin; k < end; ++k)
        body(k, rows == nullptr ? k : rows[k], r);
  }
}

template <class T> bool all_finite(const T *row, i64 count) {
  using Bits = std::conditional_t<sizeof(T) == 8, u64, std::uint32_t>;
  constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits bad = 0; // without branches, so that the compiler takes several at once
  for (i64 k = 0; k < count; ++k)
    bad |= (std::bit_cast<Bits>(row[k]) & exponent) == exponent ? Bits{1} : Bits{0};
  return bad == 0;
}

} // namespace

void gather_transposed(const ConstMatrix &from, const i64 *rows, const Matrix &to, Range some) {
  dispatch(to.type, [&](auto zero) {
    using T = decltype(zero);
    for_blocks(some, rows, to.cols, [&](i64 k, i64 i, i64 r) { to.row<T>(k)[r] = from.row<T>(r)[i]; });
  });
}

void scatter_transposed(const ConstMatrix &from, const i64 *rows, const Matrix &to, Range some) {
  dispatch(from.type, [&](auto zero) {
    using T = decltype(zero);
    for_blocks(some, rows, from.cols, [&](i64 k, i64 i, i64 r) { to.row<T>(r)[i] = from.row<T>(k)[r]; });
  });
}

void set_zero(const Matrix &a) {
  for (i64 i = 0; i < a.rows; ++i)
    std::memset(a.slice(i, i + 1).data, 0, static_cast<std::size_t>(a.cols * size_of(a.type)));
}

i64 first_not_finite(const ConstMatrix &a, int threads) {
  const i64 all = a.rows * a.cols;
  if (a.ld == a.cols && a.rows > 1)
    return first_not_finite({a.data, a.type, 1, all, all}, threads);
  std::atomic<i64> first{all};
  // Chunks of rows: a caller's matrix has few, and long ones.
  const i64 chunk = std::min<i64>(std::max<i64>(a.cols, 1), check_grain);
  const i64 chunks = (a.cols + chunk - 1) / chunk;
  parallel_ranges(threads, a.rows * chunks, std::max<i64>(check_grain / chunk, 1), [&](Range some) {
    for (i64 p = some.begin; p < some.end; ++p) {
      const i64 i = p / chunks;
      const i64 begin = p % chunks * chunk;
      const i64 count = std::min(chunk, a.cols - begin);
      const i64 at = dispatch(a.type, [&](auto zero) {
        const auto *row = a.row<decltype(zero)>(i) + begin;
        if (all_finite(row, count))
          return all;
        return i * a.cols + begin + (std::find_if(row, row + count, [](auto x) { return !std::isfinite(x); }) - row);
      });
      for (i64 before = first.load(); at < before && !first.compare_exchange_weak(before, at);)
        ;
      if (at < all)
        return; // what follows in this range is behind it
    }
  });
  return first.load();
}

} // namespace td
