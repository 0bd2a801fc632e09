// One GPU as a worker uses it: a stream, memory in stream order, library handles.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include "core/types.hpp"
#include "kernels/cuda/errors.hpp"
#include "kernels/device.hpp"
#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

/// What td changes of a thread while it works on a GPU, and gives back afterwards: the current GPU, and that a stream
/// which somebody captures into a graph forbids allocations and waiting to all others. td's own streams are in no
/// capture, so what they do is none of the graph's, and a call of theirs must not end the capture.
class CurrentDevice {
public:
  explicit CurrentDevice(int ordinal) {
    check(cudaGetDevice(&before_), "asking for the current GPU");
    if (before_ != ordinal)
      check(cudaSetDevice(ordinal), "choosing a GPU");
    changed_ = before_ != ordinal;
    begin();
  }
  /// This is for destructors, and false if it cannot be, as when the process is ending and CUDA with it.
  CurrentDevice(int ordinal, std::nothrow_t) noexcept
      : there_(cudaGetDevice(&before_) == cudaSuccess), changed_(there_ && before_ != ordinal) {
    if (changed_)
      cudaSetDevice(ordinal);
    if (there_)
      begin();
  }
  /// Changes nothing and is false.
  explicit CurrentDevice(std::nothrow_t) noexcept : there_(false) {}
  explicit operator bool() const noexcept { return there_; }
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;
  ~CurrentDevice() {
    if (!there_)
      return;
    cudaThreadExchangeStreamCaptureMode(&mode_);
    if (changed_)
      cudaSetDevice(before_);
    cudaGetLastError(); // an error that td has dealt with, or that a destructor met, is none of the caller's
  }

private:
  void begin() noexcept {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    cudaGetLastError(); // an error that the caller left unread would look like one of the next kernel's
  }

  int before_ = 0;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed; // then the caller's
  bool there_ = true;
  bool changed_ = false;
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
  CUcontext context_ = nullptr;       // the driver's, of the GPU in this process
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

/// What the copies that a context keeps take, also after its end.
struct Kept {
  i64 limit = 0; // 0: none
  std::atomic<i64> bytes = 0;
};

/// Whoever waits on the host for a GPU whose work may wait for other processes asks it again and again.
class Watch {
public:
  virtual ~Watch() = default;
  /// Whether what the GPU waits for can come; where the wait is long, as the other processes say. Else it is ended: the
  /// GPU's work goes on, with nonsense.
  virtual bool goes_on(bool is_long) = 0;
  /// Says then why not.
  [[noreturn]] virtual void fail() = 0;
};

class Gpu {
public:
  /// Copies, and building them, may take `limit` bytes, or, if it is 0, what is free.
  explicit Gpu(Memory &memory, i64 limit = 0);
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;
  ~Gpu();

  int ordinal() const noexcept { return memory_.ordinal(); }
  cudaStream_t stream() const noexcept { return stream_; }
  Memory &memory() const noexcept { return memory_; }
  const std::string &name() const noexcept { return name_; }
  i64 memory_bytes() const noexcept { return memory_bytes_; }
  const Chip &chip() const noexcept { return chip_; }
  int multiprocessors() const noexcept { return chip_.multiprocessors; }
  int capability() const noexcept { return capability_; } // 90 for 9.0

  /// What an allocation can count on now, but for what others may take.
  i64 free_bytes() const;
  void *allocate(i64 bytes, const char *what);
  void release(void *memory) noexcept;
  void wait() { finish(stream_); }
  /// Its work waits for other processes from now on; null: for none. Each wait of this Gpu then ends where theirs
  /// fails.
  /// One Gpu of a thread is watched.
  void watch(Watch *watch) noexcept;
  /// Waits until this gives another result than cudaErrorNotReady, which is to be cudaSuccess; only while it is
  /// watched.
  void wait_until(const std::function<cudaError_t()> &query);
  /// Comes before calls that may wait for the GPU within CUDA, where nobody would hear of a failure.
  void settle();
  /// The same for the Gpu that is watched on this thread, if there is one, where nothing may be thrown: what failed is
  /// reported where the processes meet next.
  static void settle_watched() noexcept;
  void upload(void *to, const void *from_host, i64 bytes);
  void download(void *to_host, const void *from, i64 bytes);
  // These are as the backend's.
  void begin_download(void *to_host, const void *from, i64 bytes);
  void end_download();

  /// Moments in the order of the stream's work, by number; see Backend::mark.
  void mark(std::size_t moment);
  double seconds_between(std::size_t first, std::size_t second);

  const std::shared_ptr<Kept> &kept() const noexcept { return kept_; }

  // These are as the backend's; what is kept is yet to be filled.
  std::shared_ptr<void> keep(i64 bytes, const char *what);
  i64 room() const;
  void fetch(int buffer, void *to, const void *from_host, i64 bytes);
  void fetch_rows(int buffer, void *to, const void *from_host, i64 bytes, i64 rows, i64 pitch);
  void await(int buffer) noexcept;
  void done(int buffer);
  void follow(cudaStream_t callers);
  /// Does what borrow does, once the array is known to be on this GPU.
  void wait_for_caller();

  void raise(Signal signal);
  void wait_for(const Gpu &other, Signal signal);
  void copy_from(const Gpu &other, void *to, const void *from, i64 bytes);

  // These are as the backend's.
  void begin_beside();
  void end_beside() noexcept { is_beside_ = false; }
  void join_beside() noexcept;
  /// The stream on which this GPU exchanges with others now, and prepares solves.
  cudaStream_t exchange_stream() const noexcept { return is_beside_ ? beside_ : stream_; }

  // Handles are made at their first use.
  cusolverDnHandle_t solver();
  cublasHandle_t blas();

private:
  /// A buffer that copies go to on a stream of their own.
  struct Passing {
    cudaEvent_t filled = nullptr;
    cudaEvent_t used = nullptr;
  };
  cudaError_t poll(const std::function<cudaError_t()> &query);
  void finish(cudaStream_t stream);
  void finish(cudaEvent_t event);
  Passing &passing(int buffer);
  bool has_arrivals(i64 bytes);
  cudaError_t record_caller(cudaStream_t callers);

  Memory &memory_;
  cudaStream_t stream_ = nullptr;
  Watch *watch_ = nullptr;        // null: its work waits for no other process
  cudaStream_t copies_ = nullptr; // made at its first use
  std::vector<Passing> passing_;
  cudaStream_t beside_ = nullptr; // of what goes on beside the work; made at its first use, as its events are
  cudaEvent_t forked_ = nullptr;
  cudaEvent_t joined_ = nullptr;
  bool is_beside_ = false;                      // what is exchanged or prepared now
  bool is_forked_ = false;                      // something was, and is not joined
  cudaStream_t callers_ = nullptr;              // null: whatever the caller has started counts
  cudaEvent_t caller_ = nullptr;                // how far the caller's stream has come; made at its first use
  cudaEvent_t signals_[2] = {nullptr, nullptr}; // made when first raised
  void *arrivals_ = nullptr;                    // pinned memory for a download; made at its first use
  i64 arrivals_bytes_ = 0;
  cudaEvent_t arrived_ = nullptr;
  void *arriving_to_ = nullptr; // where the download under way goes to; null: there is none
  i64 arriving_bytes_ = 0;
  std::shared_ptr<Kept> kept_;
  cusolverDnHandle_t solver_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  std::vector<cudaEvent_t> moments_;
  std::string name_;
  i64 memory_bytes_ = 0;
  Chip chip_;
  int capability_ = 0;
};

/// Gpu memory for the time of a call, in stream order: nothing waits when it ends.
template <class T> class Scratch {
public:
  Scratch(Gpu &device, i64 count, const char *what)
      : device_(device), data_(static_cast<T *>(device.allocate(count * static_cast<i64>(sizeof(T)), what))) {}
  /// Takes memory that was allocated, or null.
  Scratch(Gpu &device, void *memory) : device_(device), data_(static_cast<T *>(memory)) {}
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  ~Scratch() { device_.release(data_); }
  T *data() const noexcept { return data_; }

private:
  Gpu &device_;
  T *data_;
};

} // namespace td::kernels::cuda
