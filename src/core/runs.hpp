// Runs of elements that lie evenly in a dense array at strides.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/views.hpp"

namespace td {

/// The leading modes whose elements are all strides[0] apart, and how many elements they have together.
inline std::pair<std::size_t, i64> leading_run(std::span<const i64> dims, std::span<const i64> strides) {
  i64 length = dims[0];
  std::size_t modes = 1;
  for (; modes < dims.size() && strides[modes] == strides[0] * length; ++modes)
    length *= dims[modes];
  return {modes, length};
}

/// Calls run(k, offset, count) for the elements of a range, which are counted with the first index fastest, in runs:
/// element k lies at offset, and the next ones of the run strides[0] apart, always of the whole array's elements.
template <class Run>
void for_each_run(std::span<const i64> dims, std::span<const i64> strides, Range elements, Run &&run) {
  if (elements.size() <= 0)
    return;
  const auto [modes, length] = leading_run(dims, strides);
  std::array<i64, max_order> index{};
  i64 offset = 0;
  i64 rest = elements.begin / length;
  for (std::size_t m = modes; m < dims.size(); ++m) {
    index[m] = m + 1 < dims.size() ? rest % dims[m] : rest; // a part of an array counts on from what is before it
    rest /= dims[m];
    offset += index[m] * strides[m];
  }
  for (i64 k = elements.begin; k < elements.end;) {
    const i64 within = k % length;
    const i64 count = std::min(length - within, elements.end - k);
    run(k, offset + within * strides[0], count);
    k += count;
    for (std::size_t m = modes; m < dims.size() && k < elements.end; ++m) {
      if (++index[m] < dims[m] || m + 1 == dims.size()) {
        offset += strides[m];
        break;
      }
      offset -= strides[m] * (dims[m] - 1);
      index[m] = 0;
    }
  }
}

} // namespace td
