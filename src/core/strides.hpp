// Where the elements of a caller's arrays lie, and walking them.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/checked.hpp"
#include "core/error.hpp"
#include "core/views.hpp"

namespace td {

/// Elements of an array of these dims; throws Status::shape beyond 2^63 - 1.
inline i64 element_count(std::span<const i64> dims) {
  const auto count = checked_product(dims);
  if (!count)
    throw_error(Status::shape, "dims {}: more than 2^63 - 1 elements in a dense array", fmt::join(dims, " x "));
  return *count;
}

/// Strides of an array without gaps, whose first index runs fastest; its dims were checked when it was made.
inline std::vector<i64> first_fastest_strides(std::span<const i64> dims) {
  std::vector<i64> strides;
  i64 step = 1;
  for (const i64 dim : dims) {
    strides.push_back(step);
    step *= dim;
  }
  return strides;
}

/// Where an array's elements lie, from its first one's place: from the one furthest before it to one past the last.
/// Addresses beyond 2^63 - 1 bytes would wrap around to others, so that such strides throw Status::shape.
inline Range reach_of(std::span<const i64> dims, std::span<const i64> strides, ValueType type) {
  const i64 count = element_count(dims);
  if (strides.empty())
    return {0, count};
  Range reach{0, 1};
  for (std::size_t m = 0; m < dims.size(); ++m) {
    const auto span = checked_multiply(dims[m] - 1, strides[m]);
    i64 &end = strides[m] < 0 ? reach.begin : reach.end;
    i64 apart = 0;
    if (!span || __builtin_add_overflow(end, *span, &end) || __builtin_sub_overflow(reach.end, reach.begin, &apart) ||
        !checked_multiply(apart, size_of(type)))
      throw_error(Status::shape, "strides[{}] = {}: elements further apart than 2^63 - 1 bytes", m, strides[m]);
  }
  return reach;
}

/// Strides of an array that is written, also where none are given: two elements must not share a place.
inline std::vector<i64> output_strides(std::span<const i64> dims, std::span<const i64> given, ValueType type) {
  reach_of(dims, given, type); // within 2^63 - 1 bytes
  for (std::size_t m = 0; m < given.size(); ++m)
    if (given[m] == 0 && dims[m] > 1)
      throw_error(Status::shape,
                  "strides[{}] = 0 where dims[{}] = {}: expected another stride in an array that is written", m, m,
                  dims[m]);
  return given.empty() ? first_fastest_strides(dims) : std::vector<i64>(given.begin(), given.end());
}

/// Throws Status::shape for a caller's column-major matrix whose columns overlap, or whose elements are more than
/// 2^63 - 1 bytes apart. It has at least one column.
inline void require_columns(std::string_view name, ValueType type, i64 rows, i64 cols, i64 ld) {
  if (ld < rows)
    throw_error(Status::shape, "{}: ld = {} < rows = {}", name, ld, rows);
  const auto before = checked_multiply(cols - 1, ld);
  if (!before || *before > std::numeric_limits<i64>::max() / size_of(type) - rows)
    throw_error(Status::shape, "{}: ld = {} times {} columns is more than 2^63 - 1 bytes", name, ld, cols);
}

/// Calls visit(k, offset, index) for k = 0, 1, ... in the order in which the first index runs fastest; offset is where
/// the element lies (empty strides: at k) and index[m] its coordinates.
template <class Visit> void for_each_element(std::span<const i64> dims, std::span<const i64> strides, Visit &&visit) {
  std::array<i64, max_order> index{};
  const i64 count = element_count(dims);
  i64 offset = 0;
  for (i64 k = 0; k < count; ++k) {
    visit(k, strides.empty() ? k : offset, index);
    for (std::size_t m = 0; m < dims.size(); ++m) { // never to a place where there is no element
      if (++index[m] < dims[m]) {
        offset += strides.empty() ? 0 : strides[m];
        break;
      }
      offset -= strides.empty() ? 0 : strides[m] * (dims[m] - 1);
      index[m] = 0;
    }
  }
}

} // namespace td
