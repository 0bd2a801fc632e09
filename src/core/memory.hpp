// Host memory: how much there is, what work needs, and refusing what cannot fit before anything is allocated.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checked.hpp"
#include "core/options.hpp"

namespace td {

/// "1.2 MB"
std::string size_text(i64 bytes);

/// Bytes of host memory that can be had without swapping: the least of what is left in the system, in the control
/// groups (version 1 and 2) that the process is in, and of its address space under RLIMIT_AS; nothing if none says.
/// `root`, which ends with '/', is where proc and sys are.
std::optional<i64> available_memory(const std::string &root = "/");

/// A number of bytes or of entries that was computed as a double: rounded up, not below 0, and the largest i64 where it
/// is beyond.
i64 saturated(double size) noexcept;
i64 saturated_sum(i64 a, i64 b) noexcept; // of sizes that are not negative

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

/// What a call may take of host memory: whether so many bytes may be taken now is asked of it where a size becomes
/// known, before anything of that size is allocated.
class MemoryBudget {
public:
  /// Allows as much as the system, control groups and the address space leave.
  MemoryBudget() = default;
  /// Allows what option "memory_limit" does, of which `held` bytes are taken.
  explicit MemoryBudget(const Options &options, i64 held = 0);
  MemoryBudget(i64 limit, i64 held) : limit_(limit), held_(held) {}

  /// The same budget with so many bytes more taken.
  MemoryBudget beside(i64 bytes) const noexcept { return {limit_, saturated_sum(held_, bytes)}; }
  /// Option "memory_limit"; 0: none.
  i64 limit() const noexcept { return limit_; }
  HostMemory left() const;
  /// Whether a need is refused by the option or large enough for the system to be asked about.
  bool concerns(i64 bytes) const noexcept;

  /// Throws as require_memory does. The system is not asked about needs that are small beside what asking costs.
  void require(std::string_view work, const MemoryNeed &need, std::string_view advice = "") const;

private:
  i64 limit_ = 0;
  i64 held_ = 0;
};

/// Memory that is told, or that a budget is asked about whenever a need concerns it.
class HostRoom {
public:
  HostRoom() : told_(HostMemory{}) {}
  HostRoom(const HostMemory &told) : told_(told) {}      // NOLINT: memory is room
  HostRoom(const MemoryBudget &asked) : asked_(asked) {} // NOLINT: so is what a budget leaves
  /// What there is for a need of so many bytes: all there can be where it concerns no one.
  HostMemory for_need(i64 bytes) const {
    return told_ ? *told_ : asked_.concerns(bytes) ? asked_.left() : HostMemory{};
  }

private:
  std::optional<HostMemory> told_;
  MemoryBudget asked_;
};

} // namespace td
