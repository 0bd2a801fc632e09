// Walking a dense array with any strides, first index fastest: the order in which dense files hold their numbers.
#pragma once

#include <algorithm>
#include <vector>

#include "core/strides.hpp"
#include "core/views.hpp"

namespace td::io {

/// Elements of an array; the dims were checked when it was made.
inline i64 element_count(const DenseArrayView &array) noexcept {
  i64 count = 1;
  for (const i64 dim : array.dims)
    count *= dim;
  return count;
}

inline bool is_first_fastest(const DenseArrayView &array) {
  return array.strides.empty() || std::ranges::equal(array.strides, first_fastest_strides(array.dims));
}

/// Calls f(offset) for elements [begin, end) in first-index-fastest order.
template <class F> void for_each_offset(const DenseArrayView &array, Range range, F &&f) {
  const std::vector<i64> strides = array.strides.empty() ? first_fastest_strides(array.dims)
                                                         : std::vector<i64>(array.strides.begin(), array.strides.end());
  std::vector<i64> at;
  i64 offset = 0;
  i64 rest = range.begin;
  for (std::size_t m = 0; m < array.dims.size(); ++m) {
    at.push_back(rest % array.dims[m]);
    offset += at[m] * strides[m];
    rest /= array.dims[m];
  }
  for (i64 k = range.begin; k < range.end; ++k) {
    f(offset);
    for (std::size_t m = 0; m < at.size(); ++m) {
      offset += strides[m];
      if (++at[m] < array.dims[m])
        break;
      offset -= strides[m] * array.dims[m];
      at[m] = 0;
    }
  }
}

/// Copies elements [begin, end) in first-index-fastest order to `out`, in the array's own type.
inline void gather(const DenseArrayView &array, Range range, void *out) {
  dispatch(array.value_type, [&](auto zero) {
    using T = decltype(zero);
    const T *from = static_cast<const T *>(array.values);
    T *to = static_cast<T *>(out);
    for_each_offset(array, range, [&](i64 offset) { *to++ = from[offset]; });
  });
}

} // namespace td::io
