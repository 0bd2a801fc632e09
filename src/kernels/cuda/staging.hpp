// Large copies between the GPU and host memory that is not pinned. By itself CUDA moves such memory through one pinned
// buffer with one thread (on a host with 16 cores 7 GB/s to the GPU and 3 from it into new memory, of 55 that pinned
// memory gives); here several threads do, each with buffers of its own.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "kernels/cuda/gpu.hpp"

namespace td::kernels::cuda {

/// One thread uses it at a time.
class Staging {
public:
  Staging(Gpu &device, int threads) : device_(device), threads_(threads) {}
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;
  ~Staging();

  /// They copy after the device's work so far and are done when they return. Small copies and those of pinned memory go
  /// the device's way.
  void upload(void *to, const void *from_host, i64 bytes);
  void download(void *to_host, const void *from, i64 bytes);

private:
  static constexpr i64 least = i64{8} << 20; // bytes that are worth a thread
  // So small that what passes is in the host's caches on its way, and so many that none is waited for.
  static constexpr i64 chunk = i64{1} << 20;
  static constexpr i64 chunks_under_way = 4;
  struct Lane {
    cudaStream_t stream = nullptr;
    std::array<void *, chunks_under_way> buffer{}; // turn about
    std::array<cudaEvent_t, chunks_under_way> moved{};
  };
  /// What is copied, of which each lane takes the next chunk when it has a buffer free: some threads get less of the
  /// host's memory rate than others.
  struct Chunks {
    char *to;
    const char *from;
    i64 bytes;
    cudaMemcpyKind kind;
    std::atomic<i64> next = 0;
    cudaError_t move(const Lane &lane);
  };
  static bool is_worth_it(const void *host, i64 bytes);
  void copy(void *to, const void *from, i64 bytes, cudaMemcpyKind kind);
  /// Gives false, with all as before, if there is no more to be had of what a lane takes.
  bool add_lane();
  static void end(const Lane &lane) noexcept;

  Gpu &device_;
  int threads_;
  std::vector<Lane> lanes_;
  cudaEvent_t before_ = nullptr;
};

} // namespace td::kernels::cuda
