#include "allocated.hpp"

#include <atomic>
#include <cstdlib>

#include <malloc.h>

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> live{0}; // bytes more than when counting began; below 0 where older ones are given back
std::atomic<std::int64_t> peak{0};

void count(void *p) noexcept {
  const auto bytes = static_cast<std::int64_t>(malloc_usable_size(p));
  const auto now = live.fetch_add(bytes) + bytes;
  for (std::int64_t most = peak.load(); now > most && !peak.compare_exchange_weak(most, now);)
    ;
}

void *allocate(std::size_t size, std::size_t alignment) noexcept {
  if (size == 0)
    size = 1;
  // As the C++ library does, so that a program that does not count is as fast as it would be without this.
  void *p = nullptr;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__)
    p = std::malloc(size);
  else if (posix_memalign(&p, alignment, size) != 0)
    p = nullptr;
  if (p == nullptr)
    return nullptr;
  if (counting.load(std::memory_order_relaxed))
    count(p);
  return p;
}

void release(void *p) noexcept {
  if (p != nullptr && counting.load(std::memory_order_relaxed))
    live.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(p)));
  std::free(p);
}

} // namespace

#include "replaced_new.hpp"

namespace cli {

Allocated::Allocated() {
  live.store(0);
  peak.store(0);
  counting.store(true);
}

Allocated::~Allocated() { counting.store(false); }

std::int64_t Allocated::most() const { return peak.load(); }

} // namespace cli
