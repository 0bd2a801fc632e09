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

/// What is pinned in the process: where each range begins and ends.
struct PinnedRanges {
  std::mutex mutex;
  std::map<Address, Address> ends;
};
PinnedRanges &pinned_ranges() {
  static auto *all = new PinnedRanges; // tensors may end after static objects
  return *all;
}

void unpin(Address begin, Memory &memory) noexcept {
  PinnedRanges &all = pinned_ranges();
  const std::lock_guard lock(all.mutex);
  all.ends.erase(begin);
  const CurrentDevice current = memory.enter(std::nothrow);
  if (!current)
    return;
  memory.wait(); // copies from here may be under way if a call failed
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
  if (cudaHostRegister(reinterpret_cast<void *>(begin), end - begin, cudaHostRegisterPortable) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  all.ends[begin] = end;
  return {reinterpret_cast<const void *>(begin), [begin, &memory](const void *) { unpin(begin, memory); }};
}

i64 alike(const void *host, i64 bytes) {
  const auto from = reinterpret_cast<Address>(host);
  PinnedRanges &all = pinned_ranges();
  const std::lock_guard lock(all.mutex);
  const auto next = all.ends.upper_bound(from);
  Address end = from + static_cast<Address>(bytes);
  if (next != all.ends.begin() && std::prev(next)->second > from)
    end = std::min(end, std::prev(next)->second);
  else if (next != all.ends.end())
    end = std::min(end, next->first);
  return static_cast<i64>(end - from);
}

} // namespace td::kernels::cuda
