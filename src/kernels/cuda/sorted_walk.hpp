// Starts the walk over a sorted copy with the kernel for its widths.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/sorted_kernel.cuh"

namespace td::kernels::cuda {

inline constexpr int walk_threads = 512; // of a block

/// How a walk is laid out. Groups of `lanes` lanes with `size` columns each.
struct Walk {
  int key_bytes;
  int lanes;
  int size;
  int blocks;
  i64 shared; // bytes of a block
};

/// Job of one pass. Fields of more than 32 bits take `factors` = 0.
template <class T> void start_walk(Device &device, const SortedJob &job, const Walk &walk, int factors);

extern template void start_walk<float>(Device &, const SortedJob &, const Walk &, int);
extern template void start_walk<double>(Device &, const SortedJob &, const Walk &, int);

} // namespace td::kernels::cuda
