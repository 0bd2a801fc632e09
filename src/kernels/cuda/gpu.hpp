// One GPU as a worker uses it: a stream, memory in stream order, library handles.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include "core/types.hpp"
#include "kernels/cuda/errors.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/device.hpp"
#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

/// Bytes of the copies that are resident for a context, also after its end.
struct ResidentBytes {
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

  const std::shared_ptr<ResidentBytes> &resident() const noexcept { return resident_; }

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
  std::shared_ptr<ResidentBytes> resident_;
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
