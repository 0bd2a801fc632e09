// A caller's arrays on the GPU, for code that works on host memory.
#pragma once

#include <deque>
#include <string_view>

#include "core/buffer.hpp"
#include "handles.hpp"

namespace td::c_api {

/// Where a call's arrays live. Lasts as long as the call.
class Space {
public:
  /// Throws Status::unsupported for TD_DEVICE in a context without a GPU, Status::argument for what is no space.
  Space(const Context &context, td_space space);

  /// The host address of a caller's array of which elements [begin, end) may be read (begin <= 0): the array's own, or
  /// that of a copy. Throws Status::argument, naming the array, if it is not on the context's GPU.
  const void *readable(const void *array, i64 begin, i64 end, i64 element_bytes, std::string_view name);

  /// Throws Status::argument, naming the array, if it is on the context's GPU though it should be in host memory.
  void require_here(const void *array, std::string_view name) const;
  /// Throws Status::unsupported for arrays on a GPU that are to be worked on where they lie, by several of them.
  void require_alone() const;
  /// The backend whose memory the arrays are in; null: they are on the host.
  kernels::Backend *gpu() const noexcept { return gpu_; }
  /// Waits for the caller's work on the GPU. Throws as readable().
  void borrow(const void *array, std::string_view name) const;

private:
  MemoryBudget budget_;
  const Context &context_;
  kernels::Backend *gpu_ = nullptr; // null: arrays are in host memory
  std::deque<Buffer<std::byte>> copies_;
};

} // namespace td::c_api
