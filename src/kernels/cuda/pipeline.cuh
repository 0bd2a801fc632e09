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

/// How the second-level cache keeps what is read once: no longer than it has room for it beside the rest.
__device__ inline u64 read_once() {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// Copies the first `bytes` of 4, 8 or 16, of which there may be none, and zeros for the rest. Of 16 bytes the rest of
/// the 128 that they are in is wanted soon.
template <int Bytes> __device__ inline void copy_or_zero(void *shared, const void *global, int bytes = Bytes) {
  const auto to = static_cast<u32>(__cvta_generic_to_shared(shared));
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(Bytes), "r"(bytes));
}
/// The same, kept by the second-level cache as the policy says. Of 16 bytes the rest of the `Line` that they are in is
/// wanted soon; smaller ones begin anywhere, and what is beyond the edge of a tile would be fetched twice.
template <int Bytes, int Line = 128>
__device__ inline void copy_or_zero(void *shared, const void *global, int bytes, u64 policy) {
  const auto to = static_cast<u32>(__cvta_generic_to_shared(shared));
  if constexpr (Bytes == 16 && Line == 256)
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::256B [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(global),
                 "r"(bytes), "l"(policy));
  else if constexpr (Bytes == 16 && Line == 128)
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(global),
                 "r"(bytes), "l"(policy));
  else if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(global), "r"(bytes),
                 "l"(policy));
  else
    asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3, %4;" ::"r"(to), "l"(global), "n"(Bytes),
                 "r"(bytes), "l"(policy));
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
  __device__ void arrive_as_warp(int lane) {
    __syncwarp();
    if (static_cast<u32>(lane) < arrivals_of_warp)
      arrive();
  }
  /// When the copies that this thread has started are done.
  __device__ void arrive_after_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address()) : "memory");
  }
  /// Whether all have arrived for the time whose number is odd or even.
  __device__ bool test(u32 parity) {
    u32 done = 0;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(address()), "r"(parity)
                 : "memory");
    return done != 0;
  }
  /// Waits until they have.
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
