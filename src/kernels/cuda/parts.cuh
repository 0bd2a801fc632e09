// Sums that the blocks of a kernel left in parts, added up in a fixed order.
#pragma once

#include "kernels/cuda/early.cuh"
#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

/// out := the sums of parts[part][row][column], or grows by them. A thread alone would wait for memory after a few of
/// many parts: `Beside` threads each sum every so many, and their sums are added in order.
template <int Beside, class Out>
__global__ void __launch_bounds__(block_threads) sum_parts(const double *parts, i64 count, Rows<Out> out, bool add) {
  constexpr int wide = block_threads / Beside;
  __shared__ double sums[Beside][wide];
  await_kernel_before();
  let_next_start();
  const int lane = static_cast<int>(threadIdx.x) % wide;
  const int beside = static_cast<int>(threadIdx.x) / wide;
  const i64 size = out.rows * out.cols;
  for (i64 first = i64{blockIdx.x} * wide; first < size; first += i64{gridDim.x} * wide) {
    const i64 n = min(first + lane, size - 1);
    double sum = 0;
#pragma unroll 8
    for (i64 part = beside; part < count; part += Beside)
      sum += parts[part * size + n];
    if constexpr (Beside > 1) {
      sums[beside][lane] = sum;
      __syncthreads();
      for (int b = 1; b < Beside && beside == 0; ++b)
        sum += sums[b][lane];
      __syncthreads();
    }
    if (beside == 0 && first + lane < size) {
      Out &to = out(n / out.cols, n % out.cols);
      to = static_cast<Out>(add ? static_cast<double>(to) + sum : sum);
    }
  }
}

template <class Out> void add_parts(Gpu &device, const double *parts, i64 count, Rows<Out> out, bool add) {
  constexpr int many = 8;
  const i64 size = out.rows * out.cols;
  if (count < many)
    launch_early(device, sum_parts<1, Out>, blocks_for(device, size, block_threads), block_threads, 0, parts, count,
                 out, add);
  else
    launch_early(device, sum_parts<many, Out>, blocks_for(device, size, block_threads / many), block_threads, 0, parts,
                 count, out, add);
}

} // namespace td::kernels::cuda
