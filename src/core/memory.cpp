#include "core/memory.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/sentence.hpp"

namespace td {

std::string size_text(i64 bytes) {
  if (bytes < 1000)
    return count_text(bytes, "byte", "bytes");
  double size = static_cast<double>(bytes);
  std::string_view unit;
  for (const std::string_view next : {"kB", "MB", "GB", "TB", "PB", "EB"}) {
    size /= 1000;
    unit = next;
    if (size < 999.95)
      break;
  }
  return fmt::format("{:.1f} {}", size, unit);
}

namespace {

// Asking the system takes about 0.1 ms: a dozen files are read. Touching so many fresh bytes takes ten times as long.
constexpr i64 worth_asking = i64{16} << 20;

} // namespace

i64 saturated(double size) noexcept {
  constexpr i64 most = std::numeric_limits<i64>::max();
  const double whole = std::ceil(std::max(size, 0.0));
  return whole < static_cast<double>(most) ? static_cast<i64>(whole) : most;
}

i64 saturated_sum(i64 a, i64 b) noexcept {
  i64 sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<i64>::max() : sum;
}

HostMemory host_memory(const Options &options, i64 held) { return MemoryBudget(options, held).left(); }

MemoryBudget::MemoryBudget(const Options &options, i64 held) : MemoryBudget(options.integer("memory_limit"), held) {}

HostMemory MemoryBudget::left() const {
  HostMemory memory;
  if (const auto available = available_memory())
    memory.bytes = *available;
  if (limit_ > 0 && limit_ - held_ < memory.bytes)
    memory = {std::max<i64>(limit_ - held_, 0), true};
  return memory;
}

bool MemoryBudget::concerns(i64 bytes) const noexcept {
  return bytes >= worth_asking || (limit_ > 0 && bytes > limit_ - held_);
}

void MemoryBudget::require(std::string_view work, const MemoryNeed &need, std::string_view advice) const {
  if (concerns(need.total()))
    require_memory(work, need, left(), advice);
}

void MemoryNeed::add(std::string_view what, double bytes) { items_.push_back({std::string(what), saturated(bytes)}); }

i64 MemoryNeed::total() const noexcept {
  i64 sum = 0;
  for (const Item &item : items_)
    sum = saturated_sum(sum, item.bytes);
  return sum;
}

std::string MemoryNeed::text() const {
  std::vector<Item> sorted = items_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Item &a, const Item &b) { return a.bytes > b.bytes; });
  std::string text;
  for (const Item &item : sorted)
    if (item.bytes > 0)
      text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", size_text(item.bytes), item.what);
  return text;
}

void require_memory(std::string_view work, const MemoryNeed &need, const HostMemory &memory, std::string_view advice) {
  const i64 needed = need.total();
  if (needed <= memory.bytes)
    return;
  throw_error(Status::host_memory, "out of host memory: {} needs {} bytes ({}); available are {} bytes{}{}{}", work,
              needed, need.text(), memory.bytes, memory.limited_by_option ? " of option 'memory_limit'" : "",
              advice.empty() ? "" : "; ", advice);
}

} // namespace td
