// Facts of an object that are asked for by name.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/nearest.hpp"
#include "guard.hpp"

namespace td::c_api {

template <class Object, class Value> struct NamedValue {
  std::string_view key;
  Value (*get)(const Object &);
};

/// The value of that name; throws Status::option_unknown with the nearest name.
template <class Object, class Value, std::size_t n>
Value named(const NamedValue<Object, Value> (&rows)[n], const Object &object, const char *key) {
  require(key, "key");
  std::array<std::string_view, n> known;
  for (std::size_t k = 0; k < n; ++k) {
    if (rows[k].key == key)
      return rows[k].get(object);
    known[k] = rows[k].key;
  }
  const auto near = nearest_name(key, known);
  throw_error(Status::option_unknown, "no result '{}' of this type{}", key,
              near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near));
}

/// Copies at most cap numbers; n, how many there are, may be null.
inline void copy_series(const std::vector<double> &series, double *values, std::int64_t cap, std::int64_t *n) {
  if (cap < 0 || (values == nullptr && cap > 0))
    throw_error(Status::argument, "values, cap = {}: expected room for cap >= 0 numbers", cap);
  std::copy_n(series.begin(), std::min(static_cast<std::size_t>(cap), series.size()), values);
  if (n != nullptr)
    *n = static_cast<std::int64_t>(series.size());
}

} // namespace td::c_api
