// The memory of a GPU that there is not: pages which nobody may touch but the kernels and copies of its backends. Code
// of the host that reads or writes it gets a signal here, as it would get wrong numbers or a signal on a GPU. Backends
// reach the same pages under another address, which nobody else is told: to open and close them for each kernel and
// copy took several times as long as these.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <type_traits>

#include "core/views.hpp"

namespace td::software {

class Memory {
public:
  explicit Memory(int ordinal);
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory();

  int ordinal() const noexcept { return ordinal_; }
  /// Null where there is no room.
  void *allocate(i64 bytes);
  /// One allocation finds no room, after so many that do; none where that is below 0. Gives how many were left.
  i64 fail_after(i64 allocations) noexcept { return left_.exchange(allocations); }
  /// What the block held is lost.
  void release(void *memory) noexcept;
  bool holds(const void *memory) const noexcept;
  /// Those of the block that begins there; 0: none does.
  i64 bytes_of(const void *memory) noexcept;

  /// Where the kernels and copies of a backend find what is there; the same address if it is not of this memory. Of an
  /// array of which the memory holds entries from some on, the first may be said to be before all of the memory.
  template <class T> T *inside(T *memory) const noexcept {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return reinterpret_cast<T *>(reinterpret_cast<Byte *>(memory) + way_inside(memory));
  }
  Matrix inside(Matrix a) const noexcept { return {inside(a.data), a.type, a.rows, a.cols, a.ld}; }
  ConstMatrix inside(ConstMatrix a) const noexcept { return {inside(a.data), a.type, a.rows, a.cols, a.ld}; }

  /// Either may be of this memory or of the host's.
  void copy(void *to, const void *from, i64 bytes) const noexcept;

private:
  std::ptrdiff_t way_inside(const void *memory) const noexcept;

  int ordinal_;
  std::atomic<i64> left_ = -1; // allocations until one fails
  char *pages_ = nullptr;      // where callers are told that it is
  char *inside_ = nullptr;     // where the same may be touched at any time
  std::mutex mutex_;
  std::map<i64, i64> blocks_; // sizes by where they begin
  std::map<i64, i64> free_;   // the same of what lies between them
};

} // namespace td::software
