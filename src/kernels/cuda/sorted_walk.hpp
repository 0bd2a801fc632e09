// Starts the walk over a sorted copy with the kernel for its widths.
#pragma once

#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/sorted_kernel.cuh"

namespace td::kernels::cuda {

/// Threads of a block of the kernel for `factors` other modes, 0 for any number. With 512, rows of f32 and terms of f64
/// spill registers, most where keys take 8 bytes: on an H200 those kernels took 1.04 to 1.36 times as long as with 384,
/// which spill none, and with keys of 16 bytes 1.01 to 1.18 times. With keys of 4 bytes, 384 took up to 1.3 times as
/// long.
template <class Row, class Term> constexpr int walk_threads(int key_bytes, int factors) {
  return sizeof(Row) != sizeof(Term) && (key_bytes == 16 || (key_bytes == 8 && factors > 0)) ? 384 : 512;
}

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

/// Job of one pass. `factors`: other modes, if they are 2 or 3 with aligned rows and fields of at most 32 bits in keys
/// of 4 or 8 bytes, which have kernels of their own; else 0.
template <class Row, class Term> void start_walk(Gpu &device, const SortedJob &job, const Walk &walk, int factors);

extern template void start_walk<float, float>(Gpu &, const SortedJob &, const Walk &, int);
extern template void start_walk<double, double>(Gpu &, const SortedJob &, const Walk &, int);
extern template void start_walk<float, double>(Gpu &, const SortedJob &, const Walk &, int);

} // namespace td::kernels::cuda
