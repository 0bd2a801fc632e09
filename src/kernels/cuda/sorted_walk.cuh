// Instances of walk_sorted: two and three other modes and keys of 4 and 8 bytes have kernels of their own, which hold
// the rows of all modes in registers at once; all else takes one that goes from mode to mode.
#pragma once

#include "kernels/cuda/sorted_walk.hpp"

namespace td::kernels::cuda {

// In f64, two modes' rows of two entries fit the 64 registers that 1024 threads can have, and hide more of the memory's
// latency than four entries' rows in 512 threads: 1.07 times as fast on nell2 (H200). Otherwise they are spilled.
template <class T, int Factors> inline constexpr int threads_of = sizeof(T) == 8 && Factors == 2 ? 896 : 512;
template <class T, int Factors> inline constexpr int ahead_of = sizeof(T) == 8 && Factors == 2 ? 2 : 4;

template <class T> int walk_threads(int size, int factors) {
  return size > 1 && factors == 2 ? threads_of<T, 2> : threads_of<T, 0>;
}

template <class T, class Key, int Factors, int Lanes, int Size>
void start(Device &device, const SortedJob &job, const Walk &walk) {
  const auto kernel = walk_sorted<T, Key, Factors, Lanes, Size, threads_of<T, Factors>, ahead_of<T, Factors>>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(walk.shared)),
        "asking for shared memory");
  kernel<<<static_cast<unsigned>(walk.blocks), threads_of<T, Factors>, static_cast<std::size_t>(walk.shared),
           device.stream()>>>(job);
  check_launch("MTTKRP of a sorted copy");
}

template <class T, class Key, int Factors> void start_lanes(Device &device, const SortedJob &job, const Walk &walk) {
  constexpr int size = 16 / sizeof(T);
  if (walk.lanes == 8)
    start<T, Key, Factors, 8, size>(device, job, walk);
  else if (walk.lanes == 16)
    start<T, Key, Factors, 16, size>(device, job, walk);
  else
    start<T, Key, Factors, 32, size>(device, job, walk);
}

template <class T, class Key> void start_any(Device &device, const SortedJob &job, const Walk &walk) {
  if (walk.size > 1)
    start_lanes<T, Key, 0>(device, job, walk);
  else
    start<T, Key, 0, 32, 1>(device, job, walk);
}

template <class T> void start_walk(Device &device, const SortedJob &job, const Walk &walk, int factors) {
  if (walk.key_bytes == 16)
    return start_any<T, u128>(device, job, walk);
  if (walk.size == 1 || factors < 2 || factors > 3)
    return walk.key_bytes == 4 ? start_any<T, u32>(device, job, walk) : start_any<T, u64>(device, job, walk);
  if (factors == 2)
    return walk.key_bytes == 4 ? start_lanes<T, u32, 2>(device, job, walk) : start_lanes<T, u64, 2>(device, job, walk);
  return walk.key_bytes == 4 ? start_lanes<T, u32, 3>(device, job, walk) : start_lanes<T, u64, 3>(device, job, walk);
}

} // namespace td::kernels::cuda
