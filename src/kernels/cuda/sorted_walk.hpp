// What the walk over a sorted copy works on, and what starts it with the kernel for its widths.
#pragma once

#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/sorted_layout.hpp"

namespace td::kernels::cuda {

/// What becomes of a segment's sum.
enum class Finish {
  write, // it is the row: segments are whole rows
  add,   // it is added to the row, in any order
  keep   // it goes to `slots`, to be added up in the order of tiles
};

struct SortedJob {
  const void *keys;
  const void *values;
  bool f32_values; // where rows are f32 and sums f64; else values have the type of both
  Range entries;   // to work on; segments end where it ends
  const i64 *row_index;
  const i64 *row_begin;
  i64 segments;
  i64 tiles;
  const i64 *tile_begin;
  const i64 *tile_base;
  int order;
  int factors;
  FactorRows factor[most_factors]; // those that are not staged first, as their rows come from farther
  const int *exponents;            // by column of the result: it is multiplied by 2 to that; null for none
  void *out;
  i64 out_ld;
  bool out_aligned; // rows may be written 16 bytes at a time
  Range rows;       // of the result, others are not touched
  bool all_rows;
  int first_col;
  int cols;  // of this pass
  u32 pitch; // bytes of a staged row
  Finish finish;
  double *carry; // [2 * blocks][cols] what blocks carry out: of the segment that began before, of the one that goes on
  i64 *carry_segment; // [2 * blocks] of which segment, -1 for none
  double *slots;      // [segments][cols]
};

/// A sum of products with rows that were scaled, as it is without.
__device__ inline double unscaled(const SortedJob &job, int col, double sum) {
  return job.exponents == nullptr ? sum : scalbn(sum, job.exponents[job.first_col + col]);
}

/// Starts the walk for one pass, whose blocks have so many bytes of shared memory.
template <class Row, class Term>
void start_walk(Gpu &device, const SortedJob &job, const SortedLayout &layout, i64 shared);

extern template void start_walk<float, float>(Gpu &, const SortedJob &, const SortedLayout &, i64);
extern template void start_walk<double, double>(Gpu &, const SortedJob &, const SortedLayout &, i64);
extern template void start_walk<float, double>(Gpu &, const SortedJob &, const SortedLayout &, i64);

} // namespace td::kernels::cuda
