// The memory of a GPU that there is not: pages which nobody may touch but the kernels and copies of its backends. Code
// of the host that reads or writes it gets a signal here, as it would get wrong numbers or a signal on a GPU.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "core/types.hpp"

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

  /// While one lives, all of the memory may be touched, by any thread.
  class Access {
  public:
    explicit Access(Memory &memory) : memory_(memory) { memory_.open(); }
    Access(const Access &) = delete;
    Access &operator=(const Access &) = delete;
    ~Access() { memory_.close(); }

  private:
    Memory &memory_;
  };

private:
  void open();
  void close() noexcept;
  void protect(int how);
  void shrink();

  int ordinal_;
  std::atomic<i64> left_ = -1; // allocations until one fails
  void *mapped_ = nullptr;
  char *pages_ = nullptr; // within it, where a page begins
  std::mutex mutex_;
  int open_ = 0;
  i64 used_ = 0;              // bytes up to the last page of a block: few, since each access changes the rights of all
  std::map<i64, i64> blocks_; // sizes by where they begin
  std::map<i64, i64> free_;   // the same of what lies between them
};

} // namespace td::software
