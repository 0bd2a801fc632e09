// Starts the walk over a sorted copy with the kernel for its widths.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/sorted_kernel.cuh"

namespace td::kernels::cuda {

/// Of a block. Rows of f32 with terms of f64 spill some registers then, and with 384 threads none: on an H200 nell2 and
/// vast took 1.16 to 1.2 times as long with 384, but delicious, whose rows do not fit the cache, 1.22 to 1.27 times as
/// long with 512.
inline constexpr int walk_threads = 512;

/// How a walk is laid out. Groups of `lanes` lanes with `size` columns each.
struct Walk {
  int key_bytes;
  int lanes;
  int size;
  int blocks;
  i64 shared; // bytes of a block
};

/// Lanes of the widest group. Where rows and sums have different types there are fewer kernels: a rank above 64 takes
/// another pass instead.
template <class Row, class Term> inline constexpr int most_lanes = sizeof(Row) == sizeof(Term) ? 32 : 16;

/// Job of one pass. Fields of more than 32 bits take `factors` = 0.
template <class Row, class Term> void start_walk(Device &device, const SortedJob &job, const Walk &walk, int factors);

extern template void start_walk<float, float>(Device &, const SortedJob &, const Walk &, int);
extern template void start_walk<double, double>(Device &, const SortedJob &, const Walk &, int);
extern template void start_walk<float, double>(Device &, const SortedJob &, const Walk &, int);

} // namespace td::kernels::cuda
