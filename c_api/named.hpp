// Facts of an object that are asked for by name.
#pragma once

#include <array>
#include <string_view>

#include "core/options.hpp"
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

} // namespace td::c_api
