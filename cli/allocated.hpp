// How many bytes work allocates.
#pragma once

#include <cstdint>

namespace cli {

/// Counts from when it is made, one at a time.
class Allocated {
public:
  Allocated();
  /// The most bytes that there were at a time, above those that were there before.
  std::int64_t most() const;

private:
  std::int64_t before_;
};

} // namespace cli
