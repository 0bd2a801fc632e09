#include "plan/memory.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/sentence.hpp"

namespace td::plan {

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

HostMemory host_memory(const Options &options, i64 held) {
  HostMemory memory;
  if (const auto available = available_memory())
    memory.bytes = *available;
  const i64 limit = options.integer("memory_limit");
  if (limit > 0 && limit - held < memory.bytes)
    memory = {std::max<i64>(limit - held, 0), true};
  return memory;
}

void MemoryNeed::add(std::string_view what, double bytes) {
  constexpr i64 most = std::numeric_limits<i64>::max();
  const double whole = std::ceil(std::max(bytes, 0.0));
  items_.push_back({std::string(what), whole < static_cast<double>(most) ? static_cast<i64>(whole) : most});
}

i64 MemoryNeed::total() const noexcept {
  i64 sum = 0;
  for (const Item &item : items_)
    if (__builtin_add_overflow(sum, item.bytes, &sum))
      return std::numeric_limits<i64>::max();
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

} // namespace td::plan
