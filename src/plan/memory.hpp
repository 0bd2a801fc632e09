// Host memory: how much there is, what work needs, and refusing what cannot fit before anything is allocated.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checked.hpp"
#include "core/options.hpp"

namespace td::plan {

/// "1.2 MB"
std::string size_text(i64 bytes);

/// Bytes of host memory that can be had without swapping, in the system and within the control groups (version 1 and
/// 2) that the process is in; nothing if neither says. `root`, which ends with '/', is where
/// proc and sys are.
std::optional<i64> available_memory(const std::string &root = "/");

/// What one piece of work may take.
struct HostMemory {
  i64 bytes = std::numeric_limits<i64>::max();
  bool limited_by_option = false;
};

/// The smaller of available_memory() and option "memory_limit" less `held`, what the limit covers and is there already.
HostMemory host_memory(const Options &options, i64 held);

/// What memory is needed for. Sizes come as doubles, so that no product of them overflows, and stop at the largest i64.
class MemoryNeed {
public:
  struct Item {
    std::string what;
    i64 bytes = 0;
  };

  void add(std::string_view what, double bytes);
  const std::vector<Item> &items() const noexcept { return items_; }
  i64 total() const noexcept;
  /// "1.2 GB for factors, 0.3 GB for ...": largest first.
  std::string text() const;

private:
  std::vector<Item> items_;
};

/// Throws Status::host_memory, naming needed and available bytes and what the need consists of, if it does not fit.
/// `advice` says what would need less.
void require_memory(std::string_view work, const MemoryNeed &need, const HostMemory &memory, std::string_view advice);

} // namespace td::plan
