// Large copies between the GPU and host memory that is not pinned. By itself CUDA moves such memory through one pinned
// buffer with one thread (on a host with 16 cores 7 GB/s to the GPU and 3 from it into new memory, of 55 that pinned
// memory gives); here several threads do, each with buffers of its own.
#pragma once

#include <array>
#include <functional>
#include <span>
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

  /// What is copied from one place to another.
  struct Piece {
    void *to = nullptr;
    const void *from = nullptr;
    i64 bytes = 0;
  };
  using Group = std::vector<Piece>;
  /// Uploads groups of host memory that is not pinned, one after the other. Calls arrived(k) for each in turn, from one
  /// of the threads, while later ones are on their way: what it asks of the device follows that group.
  void upload(std::span<const Group> groups, const std::function<void(std::size_t)> &arrived);
  static bool is_pageable(const void *host);

private:
  static constexpr i64 least = i64{8} << 20; // bytes that are worth a thread
  // So small that what passes is in the host's caches on its way, and so many that none is waited for.
  static constexpr i64 chunk = i64{1} << 20;
  static constexpr i64 chunks_under_way = 4;
  static constexpr std::size_t buffer_bytes = chunks_under_way * chunk;
  struct Lane {
    cudaStream_t stream = nullptr;
    std::array<void *, chunks_under_way> buffer{}; // turn about, in one allocation
    std::array<cudaEvent_t, chunks_under_way> moved{};
    cudaEvent_t group = nullptr; // all that has begun by then
  };
  class Chunks;
  static bool is_worth_it(const void *host, i64 bytes);
  void copy(std::span<const Group> groups, cudaMemcpyKind kind, const std::function<void(std::size_t)> &arrived);
  /// Gives false, with all as before, if there is no more to be had of what a lane takes.
  bool add_lane();
  static void end(const Lane &lane) noexcept;

  Gpu &device_;
  int threads_;
  std::vector<Lane> lanes_;
  cudaEvent_t before_ = nullptr;
};

} // namespace td::kernels::cuda
