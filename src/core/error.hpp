// The one exception type: a status of td.h and a sentence that names what came and what was expected.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace td {

enum class Status : std::int32_t {
  ok = 0,
  stopped = 1,
  argument = -1,
  shape = -2,
  index = -3,
  type = -4,
  handle = -5,
  option_unknown = -10,
  option_range = -11,
  unsupported = -20,
  backend_unavailable = -21,
  host_memory = -30,
  device_memory = -31,
  device = -32,
  numerical = -40,
  io = -50,
  communication = -60,
  internal = -99
};

class Error : public std::runtime_error {
public:
  Error(Status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  Status status() const noexcept { return status_; }

private:
  Status status_;
};

/// throw_error(Status::shape, "factor {}: ld = {} < rows = {}", m, ld, rows)
template <class... Args>
[[noreturn]] void throw_error(Status status, fmt::format_string<Args...> format, Args &&...args) {
  throw Error(status, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace td
