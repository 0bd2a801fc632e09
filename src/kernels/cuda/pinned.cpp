#include "kernels/cuda/pinned.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

namespace td::kernels::cuda {

namespace {

using Address = std::uintptr_t;

constexpr Address page = 4096;
constexpr Address least = 1 << 16; // bytes

/// What is pinned in the process, by where each range begins. Several workers may ask for the same range.
struct PinnedRanges {
  struct Pinned {
    Address end = 0;
    int holders = 0;
  };
  std::mutex mutex;
  std::map<Address, Pinned> ranges;
};
PinnedRanges &pinned_ranges() {
  static auto *all = new PinnedRanges; // tensors may end after static objects
  return *all;
}

void unpin(Address begin, Memory &memory) noexcept {
  const CurrentDevice current = memory.enter(std::nothrow);
  if (current)
    memory.wait(); // copies from here may be under way if a call failed; others may have to copy before it ends
  PinnedRanges &all = pinned_ranges();
  const std::lock_guard lock(all.mutex);
  const auto found = all.ranges.find(begin);
  if (--found->second.holders > 0)
    return;
  all.ranges.erase(found);
  if (current)
    cudaHostUnregister(reinterpret_cast<void *>(begin));
}

} // namespace

// Whole pages alone are pinned: what shares the first or last one with other memory stays as it is, so that nothing is
// pinned twice and no copy of that other memory is half pinned, which CUDA refuses.
std::shared_ptr<const void> pin(Memory &memory, const void *host, i64 bytes) {
  const auto from = reinterpret_cast<Address>(host);
  const Address begin = (from + page - 1) / page * page;
  const Address end = (from + static_cast<Address>(bytes)) / page * page;
  if (end < begin || end - begin < least)
    return nullptr;
  PinnedRanges &all = pinned_ranges();
  const std::lock_guard lock(all.mutex);
  const auto found = all.ranges.find(begin);
  const bool shared = found != all.ranges.end() && found->second.end == end;
  if (!shared &&
      cudaHostRegister(reinterpret_cast<void *>(begin), end - begin, cudaHostRegisterPortable) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  auto &range = all.ranges[begin];
  range.end = end;
  ++range.holders;
  return {reinterpret_cast<const void *>(begin), [begin, &memory](const void *) { unpin(begin, memory); }};
}

i64 alike(const void *host, i64 bytes) {
  const auto from = reinterpret_cast<Address>(host);
  PinnedRanges &all = pinned_ranges();
  const std::lock_guard lock(all.mutex);
  const auto next = all.ranges.upper_bound(from);
  Address end = from + static_cast<Address>(bytes);
  if (next != all.ranges.begin() && std::prev(next)->second.end > from)
    end = std::min(end, std::prev(next)->second.end);
  else if (next != all.ranges.end())
    end = std::min(end, next->first);
  return static_cast<i64>(end - from);
}

} // namespace td::kernels::cuda
