#include "software/memory.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include <sys/mman.h>

namespace td::software {

namespace {

constexpr i64 page = i64{1} << 21; // a large one: rights of a whole one change about as soon as those of a small one
constexpr i64 all = i64{1} << 34;  // of addresses; pages are there once they are touched
constexpr i64 alignment = 256;

/// Bytes of the pages that hold so many.
constexpr i64 pages_of(i64 bytes) { return (bytes + page - 1) / page * page; }

} // namespace

Memory::Memory(int ordinal) : ordinal_(ordinal) {
  mapped_ = mmap(nullptr, all + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped_ == MAP_FAILED)
    throw std::bad_alloc();
  void *pages = mapped_;
  std::size_t there = all + page;
  pages_ = static_cast<char *>(std::align(page, all, pages, there));
  // Where the system has no large pages, tests take longer, and that is all that differs.
  madvise(pages_, all, MADV_HUGEPAGE);
  free_[0] = all;
}

Memory::~Memory() { munmap(mapped_, all + page); }

void *Memory::allocate(i64 bytes) {
  if (bytes > all || (left_ >= 0 && left_-- == 0))
    return nullptr;
  const std::lock_guard lock(mutex_);
  const i64 size = std::max<i64>((bytes + alignment - 1) / alignment, 1) * alignment;
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const auto &some) { return some.second >= size; });
  if (found == free_.end())
    return nullptr;
  const auto [begin, room] = *found;
  free_.erase(found);
  if (room > size)
    free_[begin + size] = room - size;
  blocks_[begin] = size;
  const i64 end = pages_of(begin + size);
  if (end > used_) {
    used_ = end;
    if (open_ > 0)
      protect(PROT_READ | PROT_WRITE);
  }
  return pages_ + begin;
}

void Memory::release(void *memory) noexcept {
  if (memory == nullptr)
    return;
  const Access access(*this);
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<char *>(memory) - pages_);
  auto [begin, size] = *found;
  blocks_.erase(found);
  std::memset(memory, 0xff, static_cast<std::size_t>(size));
  const auto next = free_.find(begin + size);
  if (next != free_.end()) {
    size += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(begin);
  if (after != free_.begin() && std::prev(after)->first + std::prev(after)->second == begin)
    std::prev(after)->second += size;
  else
    free_[begin] = size;
  shrink();
}

void Memory::shrink() {
  const auto last = blocks_.empty() ? 0 : blocks_.rbegin()->first + blocks_.rbegin()->second;
  const i64 end = pages_of(last);
  if (end < used_ && mprotect(pages_ + end, static_cast<std::size_t>(used_ - end), PROT_NONE) == 0)
    used_ = end;
}

bool Memory::holds(const void *memory) const noexcept {
  const char *at = static_cast<const char *>(memory);
  return at >= pages_ && at < pages_ + all;
}

i64 Memory::bytes_of(const void *memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const char *>(memory) - pages_);
  return found == blocks_.end() ? 0 : found->second;
}

void Memory::open() {
  const std::lock_guard lock(mutex_);
  if (open_++ == 0)
    protect(PROT_READ | PROT_WRITE);
}

void Memory::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (--open_ == 0)
    protect(PROT_NONE);
}

void Memory::protect(int how) {
  if (used_ > 0 && mprotect(pages_, static_cast<std::size_t>(used_), how) != 0)
    throw std::bad_alloc();
}

} // namespace td::software
