// A caller's arrays as views, with the checks that need no look at their contents.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/ranges.h>

#include "core/views.hpp"
#include "guard.hpp"

namespace td::c_api {

/// dims[order]; the numbers themselves are checked where they are used.
inline std::span<const i64> dims_view(std::int32_t order, const std::int64_t *dims) {
  if (order < min_order || order > max_order)
    throw_error(Status::shape, "order = {}: expected {} .. {}", order, min_order, max_order);
  require(dims, "dims");
  return {dims, static_cast<std::size_t>(order)};
}

/// Coordinates as td_tensor_create and td_ktensor_values_at take them, without their values.
inline EntriesView coordinates_view(std::span<const i64> dims, std::int64_t n, td_type index_type_code,
                                    const void *const *indices, std::int32_t index_base) {
  EntriesView view;
  view.dims = dims;
  view.nnz = n;
  view.index_type = index_type(index_type_code, "index_type");
  require_index_base(index_base);
  view.index_base = index_base;
  if (n < 0)
    throw_error(Status::shape, "nnz = {}: expected nnz >= 0", n);
  if (n > 0) {
    require(indices, "indices");
    for (std::size_t m = 0; m < dims.size(); ++m)
      if (indices[m] == nullptr)
        throw_error(Status::argument, "indices[{}]: null pointer", m);
  }
  view.indices = indices;
  return view;
}

inline void require_same_dims(std::span<const i64> a, const char *a_name, std::span<const i64> b, const char *b_name) {
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end()))
    throw_error(Status::shape, "{} is {}, {} is {}: expected the same dims", a_name, fmt::join(a, " x "), b_name,
                fmt::join(b, " x "));
}

/// Empty for null: first index fastest.
inline std::span<const i64> strides_view(int order, const std::int64_t *strides) {
  return strides == nullptr ? std::span<const i64>{} : std::span<const i64>{strides, static_cast<std::size_t>(order)};
}

/// The value, as a result that is given to the caller. Throws Status::numerical if it is not finite.
inline double finite(double value, std::string_view name) {
  if (!std::isfinite(value))
    throw_error(Status::numerical, "{} is {} the {} number in f64, {}", name, value < 0 ? "below" : "beyond",
                value < 0 ? "smallest" : "largest", value < 0 ? "-1.8e308" : "1.8e308");
  return value;
}

} // namespace td::c_api
