#include "software/memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace td::software {

namespace {

constexpr i64 all = i64{1} << 34; // of addresses; pages are there once they are touched
constexpr i64 alignment = 256;

/// The file's pages behind as many addresses at which there is nothing.
char *map(int file, int rights) {
  constexpr int way = MAP_NORESERVE | MAP_PRIVATE | MAP_ANONYMOUS;
  void *const reserved = mmap(nullptr, 2 * all, PROT_NONE, way, -1, 0);
  if (reserved == MAP_FAILED)
    throw std::bad_alloc();
  void *const pages = static_cast<char *>(reserved) + all;
  if (mmap(pages, all, rights, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED)
    throw std::bad_alloc();
  return static_cast<char *>(pages);
}

} // namespace

Memory::Memory(int ordinal) : ordinal_(ordinal) {
  const int file = memfd_create("memory of a GPU in software", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, all) != 0)
    throw std::bad_alloc();
  pages_ = map(file, PROT_NONE);
  inside_ = map(file, PROT_READ | PROT_WRITE);
  ::close(file); // mapped, it stays
  free_[0] = all;
}

Memory::~Memory() {
  for (char *const pages : {pages_, inside_})
    munmap(pages - all, 2 * all);
}

std::ptrdiff_t Memory::way_inside(const void *memory) const noexcept {
  const char *at = static_cast<const char *>(memory);
  return at >= pages_ - all && at < pages_ + all ? inside_ - pages_ : 0;
}

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
  return pages_ + begin;
}

void Memory::release(void *memory) noexcept {
  if (memory == nullptr)
    return;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<char *>(memory) - pages_);
  auto [begin, size] = *found;
  blocks_.erase(found);
  std::memset(inside(memory), 0xff, static_cast<std::size_t>(size));
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
}

bool Memory::holds(const void *memory) const noexcept {
  const char *at = static_cast<const char *>(memory);
  return at >= pages_ && at < pages_ + all;
}

void Memory::copy(void *to, const void *from, i64 bytes) const noexcept {
  if (bytes > 0)
    std::memmove(inside(to), inside(from), static_cast<std::size_t>(bytes));
}

i64 Memory::bytes_of(const void *memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const char *>(memory) - pages_);
  return found == blocks_.end() ? 0 : found->second;
}

} // namespace td::software
