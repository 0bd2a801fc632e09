// Replaces operator new and delete, which libtd then uses too, by allocate and release. For one source of a program,
// which defines these two before it includes this:
//
//   void *allocate(std::size_t size, std::size_t alignment) noexcept;   null: there is no memory
//   void release(void *p) noexcept;                                     p may be null
#pragma once

#include <cstddef>
#include <new>

namespace replaced_new {

inline void *allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void *p = allocate(size, alignment))
    return p;
  throw std::bad_alloc();
}

inline constexpr std::size_t plain = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
inline std::size_t size(std::align_val_t a) noexcept { return static_cast<std::size_t>(a); }

} // namespace replaced_new

void *operator new(std::size_t n) { return replaced_new::allocate_or_throw(n, replaced_new::plain); }
void *operator new[](std::size_t n) { return replaced_new::allocate_or_throw(n, replaced_new::plain); }
void *operator new(std::size_t n, std::align_val_t a) {
  return replaced_new::allocate_or_throw(n, replaced_new::size(a));
}
void *operator new[](std::size_t n, std::align_val_t a) {
  return replaced_new::allocate_or_throw(n, replaced_new::size(a));
}
void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, replaced_new::plain); }
void *operator new[](std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, replaced_new::plain); }
void *operator new(std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept {
  return allocate(n, replaced_new::size(a));
}
void *operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept {
  return allocate(n, replaced_new::size(a));
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
