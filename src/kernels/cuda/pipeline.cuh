// Copies to shared memory that nobody waits for, and barriers that tell when they are there.
#pragma once

#include "core/types.hpp"

namespace td::kernels::cuda {

using u32 = std::uint32_t;

/// Copies 16 bytes to shared memory without waiting; await_copies waits for this thread's.
__device__ inline void copy_async(void *shared, const void *global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<u32>(__cvta_generic_to_shared(shared))),
               "l"(global));
}
__device__ inline void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
/// Ends a group of this thread's copies; await_copies_but waits for all groups but the last `Groups`.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Groups> __device__ inline void await_copies_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

/// Copies 4, 8 or 16 bytes. Of 16 the rest of their 128 is wanted soon where `Line` says so; smaller ones begin
/// anywhere, and what is beyond the edge of a tile would be fetched twice.
template <int Bytes, bool Line = true> __device__ inline void copy_all(void *shared, const void *global) {
  const auto to = static_cast<u32>(__cvta_generic_to_shared(shared));
  if constexpr (Bytes == 16 && Line)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(global));
  else if constexpr (Bytes == 16)
    copy_async(shared, global);
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(Bytes));
}
/// Copies the first `bytes` of these, of which there may be none, and zeros for the rest.
template <int Bytes, bool Line = true>
__device__ inline void copy_or_zero(void *shared, const void *global, int bytes) {
  const auto to = static_cast<u32>(__cvta_generic_to_shared(shared));
  if constexpr (Bytes == 16 && Line)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes));
  else if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(Bytes), "r"(bytes));
}

/// How often a warp arrives at a barrier: once, which costs least, with a lane for all behind __syncwarp. The racecheck
/// tool of compute-sanitizer takes such an arrival for that lane's alone (seen in 2025.3): it reports hazards of the
/// other lanes once a stage is used again. For it kernels are compiled so that every lane arrives.
#ifdef TD_EVERY_LANE_ARRIVES
inline constexpr u32 arrivals_of_warp = 32;
#else
inline constexpr u32 arrivals_of_warp = 1;
#endif

/// A barrier in shared memory that some threads arrive at and others wait for.
class Barrier {
public:
  __device__ void start(u32 arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  __device__ void arrive() {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address()) : "memory");
  }
  /// When all of a warp have come here, as arrivals_of_warp arrivals.
  __device__ void arrive_as_warp() {
    __syncwarp();
    if (threadIdx.x % 32 < arrivals_of_warp)
      arrive();
  }
  /// When the copies that this thread has started are done.
  __device__ void arrive_after_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address()) : "memory");
  }
  /// Waits until all have arrived for the time whose number is odd or even.
  __device__ void wait(u32 parity) {
    u32 done = 0;
    do {
#if __CUDA_ARCH__ >= 900
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
#else
      asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
#endif
                   : "=r"(done)
                   : "r"(address()), "r"(parity)
                   : "memory");
    } while (done == 0);
  }

private:
  __device__ u32 address() const { return static_cast<u32>(__cvta_generic_to_shared(&state_)); }
  u64 state_;
};

} // namespace td::kernels::cuda
