#include "allocated.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include <malloc.h>

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> live{0}; // bytes more than when counting began; below 0 where older ones are given back
std::atomic<std::int64_t> peak{0};

void *taken(void *p) noexcept {
  if (p != nullptr && counting.load(std::memory_order_relaxed)) {
    const auto bytes = static_cast<std::int64_t>(malloc_usable_size(p));
    const auto now = live.fetch_add(bytes) + bytes;
    for (std::int64_t most = peak.load(); now > most && !peak.compare_exchange_weak(most, now);)
      ;
  }
  return p;
}

void *given_back(void *p) noexcept {
  if (p != nullptr && counting.load(std::memory_order_relaxed))
    live.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(p)));
  return p;
}

} // namespace

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// The program's malloc stands before the C library's: what libraries below td take counts, too, which operator new does
// not see.
extern "C" {

void *__libc_malloc(std::size_t size);
void *__libc_calloc(std::size_t count, std::size_t size);
void *__libc_realloc(void *p, std::size_t size);
void *__libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void *p);

void *malloc(std::size_t size) noexcept { return taken(__libc_malloc(size)); }
void *calloc(std::size_t count, std::size_t size) noexcept { return taken(__libc_calloc(count, size)); }
void *realloc(void *p, std::size_t size) noexcept {
  void *there = __libc_realloc(given_back(p), size);
  return there == nullptr && size != 0 ? (taken(p), nullptr) : taken(there);
}
void *memalign(std::size_t alignment, std::size_t size) noexcept { return taken(__libc_memalign(alignment, size)); }
void *aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void **p, std::size_t alignment, std::size_t size) noexcept {
  *p = memalign(alignment, size);
  return *p == nullptr ? ENOMEM : 0;
}
void free(void *p) noexcept { __libc_free(given_back(p)); }

} // extern "C"

#else

namespace {

void *allocate(std::size_t size, std::size_t alignment) noexcept {
  void *p = nullptr;
  return posix_memalign(&p, alignment, size == 0 ? 1 : size) == 0 ? taken(p) : nullptr;
}

void release(void *p) noexcept { std::free(given_back(p)); }

} // namespace

#include "replaced_new.hpp"

#endif

namespace cli {

Allocated::Allocated() {
  live.store(0);
  peak.store(0);
  counting.store(true);
}

Allocated::~Allocated() { counting.store(false); }

std::int64_t Allocated::most() const { return peak.load(); }

} // namespace cli
