#include "allocated.hpp"

#include <atomic>
#include <cstdlib>

#include <malloc.h>

namespace {

std::atomic<std::int64_t> live{0};
std::atomic<std::int64_t> peak{0};

void *allocate(std::size_t size, std::size_t alignment) noexcept {
  void *p = nullptr;
  if (posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size == 0 ? 1 : size) != 0)
    return nullptr;
  const auto now = live.fetch_add(static_cast<std::int64_t>(malloc_usable_size(p))) +
                   static_cast<std::int64_t>(malloc_usable_size(p));
  for (std::int64_t most = peak.load(); now > most && !peak.compare_exchange_weak(most, now);)
    ;
  return p;
}

void release(void *p) noexcept {
  if (p != nullptr)
    live.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(p)));
  std::free(p);
}

} // namespace

#include "replaced_new.hpp"

namespace cli {

Allocated::Allocated() : before_(live.load()) { peak.store(before_); }

std::int64_t Allocated::most() const { return peak.load() - before_; }

} // namespace cli
