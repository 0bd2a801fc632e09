// How much memory work takes at its peak.
#pragma once

#include <cstdint>
#include <optional>

namespace cli {

class PeakMemory {
public:
  PeakMemory();
  /// The most bytes that were resident since the object was made, above those that were then; nothing where the system
  /// does not tell.
  std::optional<std::int64_t> growth() const;

private:
  std::optional<std::int64_t> before_;
};

} // namespace cli
