// Starts MTTKRP over a BLCO copy with the kernel for its widths. Where sums are wider than values there is one for any
// number of modes alone: so it is compiled sooner.
#pragma once

#include "kernels/cuda/blco_kernel.cuh"
#include "kernels/cuda/by_row.hpp"
#include "kernels/cuda/factor_rows.hpp"
#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

/// Rows of the result := the sums of its copies, in order; or they grow by them.
template <class T>
__global__ void merge_copies(const T *copies, int count, i64 copy_size, i64 ld, Rows<T> out, Range rows, bool add) {
  const i64 size = (rows.end - rows.begin) * out.cols;
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < size; k += i64{gridDim.x} * blockDim.x) {
    const i64 row = rows.begin + k / out.cols;
    const i64 col = k % out.cols;
    double sum = add ? static_cast<double>(out(row, col)) : 0;
    for (int c = 0; c < count; ++c)
      sum += static_cast<double>(copies[c * copy_size + row * ld + col]);
    out(row, col) = static_cast<T>(sum);
  }
}

template <class T, class Term, int Factors, int Lanes, int Size> void start(Gpu &device, const BlcoJob &job) {
  const auto kernel = walk_blco<T, Term, Factors, Lanes, Size>;
  allow_shared(kernel, sizeof(BlcoTile<Term>));
  const i64 tiles = (job.entries.size() + blco_tile - 1) / blco_tile;
  kernel<<<static_cast<unsigned>(tiles), blco_threads, sizeof(BlcoTile<Term>), device.stream()>>>(job);
  check_launch("MTTKRP of a BLCO copy");
}

template <class T, class Term, int Factors> void start_lanes(Gpu &device, const BlcoJob &job, int lanes) {
  constexpr int size = 16 / sizeof(T);
  if (lanes == 8)
    start<T, Term, Factors, 8, size>(device, job);
  else if (lanes == 16)
    start<T, Term, Factors, 16, size>(device, job);
  else
    start<T, Term, Factors, 32, size>(device, job);
}

template <class T, class Term> void add_segments(Gpu &device, const BlcoView &x, const MttkrpArgs &args) {
  constexpr bool mixed = sizeof(T) != sizeof(Term);
  const auto others = OtherFactors::of(x.layout, x.dims, args);
  BlcoJob job{};
  job.keys = x.keys;
  job.values = x.values;
  job.entries = args.entries;
  job.blocks = x.blocks;
  job.block_begin = x.block_begin;
  job.block_base = x.block_base;
  job.order = static_cast<int>(x.dims.size());
  job.factors = others.count;
  std::copy_n(others.factor, others.count, job.factor);
  job.target = OtherFactors::field(x.layout, x.dims, args.mode);
  job.rows = args.rows;
  const i64 cols = args.out.cols;
  const i64 ld = blco_copy_ld(cols);
  job.copies = blco_copies(args, device.multiprocessors());
  job.copy_size = args.out.rows * ld;
  const Scratch<Term> copies(device, job.copies > 1 ? job.copies * job.copy_size : 0, "copies of the result of MTTKRP");
  job.out = args.out.data;
  job.out_ld = args.out.ld;
  Matrix to = args.out.slice(args.rows.begin, args.rows.end);
  if (job.copies > 1) {
    job.out = copies.data();
    job.out_ld = ld;
    to = {copies.data(), args.out.type, job.copies * args.out.rows, ld, ld};
  }
  if (job.copies > 1 || !args.add)
    set_zero(device, to);
  if (args.entries.size() > 0) {
    const bool aligned = others.aligned && (mixed || job.copies > 1 || is_aligned(args.out));
    const int size = aligned ? 16 / static_cast<int>(sizeof(T)) : 1;
    const Passes passes(cols, size, 32 * size);
    for (i64 first = 0; first < cols; first += passes.columns) {
      job.first_col = static_cast<int>(first);
      job.cols = static_cast<int>(std::min<i64>(passes.columns, cols - first));
      if (!aligned)
        start<T, Term, 0, 32, 1>(device, job);
      else if (mixed || !others.narrow || others.count < 2 || others.count > 3)
        start_lanes<T, Term, 0>(device, job, passes.lanes);
      else if constexpr (!mixed) {
        if (others.count == 2)
          start_lanes<T, Term, 2>(device, job, passes.lanes);
        else
          start_lanes<T, Term, 3>(device, job, passes.lanes);
      }
    }
  }
  if (job.copies > 1) {
    const unsigned blocks = blocks_for(device, args.rows.size() * cols, block_threads);
    merge_copies<Term><<<blocks, block_threads, 0, device.stream()>>>(copies.data(), job.copies, job.copy_size, ld,
                                                                      rows_of<Term>(args.out), args.rows, args.add);
    check_launch("merging the copies of a result");
  }
}

} // namespace td::kernels::cuda
