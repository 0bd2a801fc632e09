// A GPU's memory, and how a thread comes to work on it.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "core/types.hpp"
#include "kernels/cuda/errors.hpp"
#include "kernels/device.hpp"

namespace td::kernels::cuda {

/// What td changes of a thread while it works on a GPU, and gives back afterwards: the current context of the driver,
/// and that a stream which somebody captures into a graph forbids allocations and waiting to all others. td's own
/// streams are in no capture, so what they do is none of the graph's, and a call of theirs must not end the capture.
///
/// The context is pushed and popped, since choosing a GPU by cudaSetDevice and then the one before makes a context on
/// that one, with hundreds of megabytes, for a thread that never worked there.
class CurrentDevice {
public:
  explicit CurrentDevice(CUcontext context);
  /// This is for destructors, and false if it cannot be, as when the process is ending and CUDA with it.
  CurrentDevice(CUcontext context, std::nothrow_t) noexcept;
  /// Changes nothing and is false.
  explicit CurrentDevice(std::nothrow_t) noexcept : there_(false) {}
  explicit operator bool() const noexcept { return there_; }
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;
  ~CurrentDevice();

private:
  CUresult begin(CUcontext context) noexcept;

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed; // then the caller's
  bool there_ = false;
  bool pushed_ = false;
};

/// A GPU's memory, shared by all contexts that work on it: a pool of our own, so that the settings of the process's
/// default pool stay the caller's. What was freed is kept for the next allocation while any Gpu is open.
///
/// cudaDeviceReset ends all streams, events and pinned memory of the process on a GPU, but no pool; in a forked process
/// nothing of CUDA works. A Memory and what was made with it is of no use afterwards: enter() says so, and whoever
/// destroys what belongs to it calls nothing of CUDA, which ends the process when it is given a stream that is gone.
class Memory {
public:
  /// The one of a GPU, made at its first use, and anew after a reset; a GPU that is named again by one context has
  /// another one for each repeat. None is ever destroyed: memory may be freed in the last moments of a process.
  static Memory &of(int ordinal, int repeat = 0);
  /// Whether this process was forked from one that had a Memory.
  static bool is_forked() noexcept;

  /// Throws Status::device if what was made with this memory is gone.
  CurrentDevice enter() const;
  /// This is for destructors, and false if there is nothing left to destroy.
  CurrentDevice enter(std::nothrow_t) const noexcept;

  /// A stream whose work may touch this memory.
  cudaStream_t open_stream();
  /// Waits for its work and destroys it.
  void close(cudaStream_t stream) noexcept;
  /// Waits for the work on them, not on the whole GPU: for that CUDA refuses to wait while any stream is captured.
  void wait() noexcept;
  /// Asks evictables for memory if there is not enough.
  void *allocate(i64 bytes, const char *what, cudaStream_t stream);
  /// What is free on the GPU, and what the pool keeps for the next allocation.
  i64 free_bytes() const;
  /// Gives null if there is not enough.
  void *try_allocate(i64 bytes, const char *what, cudaStream_t stream);
  /// Frees what kernels on any of the open streams may still work on; also after a reset.
  void release(void *memory) noexcept;
  int ordinal() const noexcept { return ordinal_; }

  /// Lets another GPU read this memory; false where no link leads there.
  bool open_to(int ordinal);

  void add_evictable(std::weak_ptr<Evictable> evictable);
  std::vector<std::shared_ptr<Evictable>> evictables();

private:
  enum class State { usable, reset, forked };
  explicit Memory(int ordinal);
  State state() const noexcept;

  int ordinal_;
  CUcontext context_ = nullptr;       // the one of the GPU in this process that the runtime uses
  unsigned long long context_id_ = 0; // which a reset changes
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t stream_ = nullptr; // on which memory is freed that belongs to no Gpu
  std::mutex streams_mutex_;
  std::vector<cudaStream_t> streams_; // that are open
  std::mutex open_mutex_;
  std::vector<int> open_to_; // other GPUs
  std::mutex evictables_mutex_;
  std::vector<std::weak_ptr<Evictable>> evictables_;
};

} // namespace td::kernels::cuda
