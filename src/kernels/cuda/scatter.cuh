// MTTKRP over entries in no order: each adds its terms to its row, or, where the order of sums is to be the stored one,
// the entries are sorted by row first.
#pragma once

#include "kernels/cuda/by_row.hpp"
#include "kernels/cuda/entries.cuh"

namespace td::kernels::cuda {

template <class Entries, class T, class Term>
__global__ void add_terms(const __grid_constant__ Entries x, const __grid_constant__ Factors<T> factors, int mode,
                          Rows<Term> out, Range rows, Range entries, int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const i64 groups = i64{gridDim.x} * blockDim.x / lanes;
  for (i64 k = entries.begin + (i64{blockIdx.x} * blockDim.x + threadIdx.x) / lanes; k < entries.end; k += groups) {
    const auto entry = x.at(k);
    const i64 row = x.index(entry, mode);
    if (row < rows.begin || row >= rows.end)
      continue;
    for (i64 r = lane; r < out.cols; r += lanes)
      atomicAdd(&out(row, r), times_factors(x, entry, static_cast<Term>(x.values[k]), factors, mode, r));
  }
}

/// The row of each entry, or `none` for those whose row is not asked for; and the entries' numbers.
template <class Entries>
__global__ void rows_of_entries(const __grid_constant__ Entries x, int mode, Range rows, Range entries, u64 none,
                                u64 *row, i64 *number) {
  const i64 count = entries.end - entries.begin;
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < count; k += i64{gridDim.x} * blockDim.x) {
    const i64 i = x.index(x.at(entries.begin + k), mode);
    row[k] = i < rows.begin || i >= rows.end ? none : static_cast<u64>(i);
    number[k] = entries.begin + k;
  }
}

template <class Entries, class T, class Term>
__global__ void sum_rows(const __grid_constant__ Entries x, const __grid_constant__ Factors<T> factors, int mode,
                         Rows<Term> out, Range rows, bool add, const u64 *row, const i64 *number, i64 count,
                         int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const i64 groups = i64{gridDim.x} * blockDim.x / lanes;
  for (i64 i = rows.begin + (i64{blockIdx.x} * blockDim.x + threadIdx.x) / lanes; i < rows.end; i += groups) {
    const i64 begin = lower_bound(row, 0, count, static_cast<u64>(i));
    for (i64 r = lane; r < out.cols; r += lanes) {
      Term sum = add ? out(i, r) : Term{0};
      for (i64 k = begin; k < count && row[k] == static_cast<u64>(i); ++k)
        sum += times_factors(x, x.at(number[k]), static_cast<Term>(x.values[number[k]]), factors, mode, r);
      out(i, r) = sum;
    }
  }
}

/// T: of values and factors. Term: of terms, sums and the result.
template <class T, class Term, class Entries> void scatter(Gpu &device, const Entries &x, const MttkrpArgs &args) {
  const Rows<Term> out = rows_of<Term>(args.out);
  const Factors<T> factors(args.factors);
  const int lanes = lanes_for(out.cols);
  const i64 count = args.entries.size();
  if (args.conflicts == Conflicts::owner) {
    const auto none = static_cast<u64>(args.out.rows);
    ByRow order(device, count);
    rows_of_entries<<<blocks_for(device, count, block_threads), block_threads, 0, device.stream()>>>(
        x, args.mode, args.rows, args.entries, none, order.row(), order.number());
    check_launch("finding the rows of entries");
    order.sort(none);
    sum_rows<<<blocks_for(device, args.rows.size(), block_threads / lanes), block_threads, 0, device.stream()>>>(
        x, factors, args.mode, out, args.rows, args.add, order.row(), order.number(), count, lanes);
    check_launch("MTTKRP by rows");
    return;
  }
  if (!args.add)
    set_zero(device, args.out.slice(args.rows.begin, args.rows.end));
  if (count == 0)
    return;
  add_terms<<<blocks_for(device, count, block_threads / lanes), block_threads, 0, device.stream()>>>(
      x, factors, args.mode, out, args.rows, args.entries, lanes);
  check_launch("MTTKRP by entries");
}

} // namespace td::kernels::cuda
