// Starts the walk over a sorted copy with the kernel for its widths.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/sorted_kernel.cuh"

namespace td::kernels::cuda {

/// How a walk is laid out. Groups of `lanes` lanes with `size` columns each.
struct Walk {
  int key_bytes;
  int lanes;
  int size;
  int threads; // of a block
  int blocks;
  i64 shared; // bytes of a block
};

/// Threads of a block of the kernel that start_walk will take.
template <class T> int walk_threads(int size, int factors);

/// Job of one pass. Fields of more than 32 bits take `factors` = 0 in walk_threads and here.
template <class T> void start_walk(Device &device, const SortedJob &job, const Walk &walk, int factors);

extern template int walk_threads<float>(int, int);
extern template int walk_threads<double>(int, int);
extern template void start_walk<float>(Device &, const SortedJob &, const Walk &, int);
extern template void start_walk<double>(Device &, const SortedJob &, const Walk &, int);

} // namespace td::kernels::cuda
