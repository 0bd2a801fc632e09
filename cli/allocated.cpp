#include "allocated.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

// Replaces operator new and delete, which libtd then uses too, by ones that count.
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

void *allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void *p = allocate(size, alignment))
    return p;
  throw std::bad_alloc();
}

void release(void *p) noexcept {
  if (p != nullptr)
    live.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(p)));
  std::free(p);
}

constexpr std::size_t plain = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
std::size_t size(std::align_val_t a) noexcept { return static_cast<std::size_t>(a); }

} // namespace

namespace cli {

Allocated::Allocated() : before_(live.load()) { peak.store(before_); }

std::int64_t Allocated::most() const { return peak.load() - before_; }

} // namespace cli

void *operator new(std::size_t n) { return allocate_or_throw(n, plain); }
void *operator new[](std::size_t n) { return allocate_or_throw(n, plain); }
void *operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, size(a)); }
void *operator new[](std::size_t n, std::align_val_t a) { return allocate_or_throw(n, size(a)); }
void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, plain); }
void *operator new[](std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, plain); }
void *operator new(std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept { return allocate(n, size(a)); }
void *operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept {
  return allocate(n, size(a));
}
void operator delete(void *p) noexcept { release(p); }
void operator delete[](void *p) noexcept { release(p); }
void operator delete(void *p, std::size_t) noexcept { release(p); }
void operator delete[](void *p, std::size_t) noexcept { release(p); }
void operator delete(void *p, std::align_val_t) noexcept { release(p); }
void operator delete[](void *p, std::align_val_t) noexcept { release(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void *p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { release(p); }
void operator delete[](void *p, const std::nothrow_t &) noexcept { release(p); }
