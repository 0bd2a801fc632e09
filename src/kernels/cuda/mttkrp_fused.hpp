// What the fused MTTKRP of a dense tensor works on, and what starts it with the kernel for its layout.
#pragma once

#include "kernels/cuda/dense_layout.hpp"
#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/lanes.cuh"

namespace td::kernels::cuda::fused {

/// A factor whose rows are multiplied by; without one, data is null: the mode itself.
template <class T> struct Mode {
  const T *data;
  i64 ld;
  i64 dim;
};

/// How a chunk of the tensor is copied: element by element, or 16 bytes at a time, which begin where neighbours in
/// memory begin or, where these begin anywhere, up to 32 bytes before. Where the depth runs along rows that begin
/// anywhere, whole lines are copied for a few columns, as long as a chunk is deep and aligned to that, and nothing is
/// read twice.
enum class Copies { elements, wide, shifted, lines };

template <class T> struct Job {
  const T *values;
  const T *tensor; // all of it, from `values` on a part of the depth
  const T *tensor_end;
  Copies copies;
  int shift;      // how far the first row begins behind a line of a chunk's depth; elements
  u32 line_shift; // how much farther each next row begins behind a line
  int row_modes;
  Mode<T> modes[max_order]; // of the rows, first to last
  i64 rows;                 // of the product
  i64 inner;
  i64 count;
  i64 dim; // of the mode, of which `count` from `first` on are rows
  i64 first;
  i64 depth_whole; // of the tensor, of which `depth` are summed over
  i64 row_step;    // from row to row in the tensor, were all of the mode's rows taken
  i64 low;         // where modes of one side are apart in memory: combinations of those before the others
  i64 gap;         // and the elements between these; 0: there are none
  i64 depth_first; // where these are of the depth: its first one
  i64 depth;
  i64 depth_step;         // from one to the next in the tensor
  const double *products; // rows of the Khatri-Rao product, one for each of the depth; or pair_rows
  const float *narrow;    // these in f32, the factor of a depth of one mode; null: `products` has them
  const double *scales;   // [rank] that the products of a column are to be multiplied by; null: 1
  i64 product_ld;
  bool pairs; // products are copied two at a time; a row has an even number
  u32 chunks;
  u32 whole_tiles; // that have all of their rows
  u32 whole_chunks;
  u32 own_tiles; // that have one block, the same number for each block
  i64 units;     // pairs of a row tile and a chunk
  i64 blocks;    // of each column tile
  i64 rank;
  int columns; // of a tile
  int column_tiles;
  i64 slots;
  double *partial; // [blocks][column_tiles][slots][columns]
  bool direct;     // DenseLayout::direct
  bool grows;      // what is written directly is added
  bool out_f64;
  void *out; // row `first` of the result
  i64 out_ld;
};

template <class T> __device__ inline u64 quotient(T a, T b) {
  const auto x = static_cast<u64>(a);
  const auto y = static_cast<u64>(b);
  if ((x | y) >> 32 == 0)
    return static_cast<u32>(x) / static_cast<u32>(y);
  return x / y;
}

__device__ inline i64 remainder(i64 a, i64 b) { return a - static_cast<i64>(quotient(a, b)) * b; }

/// The units that a block shares with others: its part of those beyond the tiles that have one block.
template <class T> __device__ Range shared_units(const Job<T> &job, i64 block) {
  return part_of({i64{job.own_tiles} * job.chunks, job.units}, block, job.blocks);
}

/// Starts the kernel for a job that was cut as the layout says.
template <class T> void start(Gpu &device, const Job<T> &job, const DenseLayout &layout);

extern template void start<float>(Gpu &, const Job<float> &, const DenseLayout &);
extern template void start<double>(Gpu &, const Job<double> &, const DenseLayout &);

} // namespace td::kernels::cuda::fused
