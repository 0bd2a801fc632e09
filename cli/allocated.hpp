// How many bytes work allocates.
#pragma once

#include <cstdint>

namespace cli {

/// Counts as long as it lives, one at a time. Where there is none, allocating costs what it costs anyway.
class Allocated {
public:
  Allocated();
  Allocated(const Allocated &) = delete;
  Allocated &operator=(const Allocated &) = delete;
  ~Allocated();
  /// The most bytes that there were at a time, above those that were there before.
  std::int64_t most() const;
};

} // namespace cli
