// Rows of a Khatri-Rao product in memory, which the dense kernels multiply the tensor by.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mttkrp_fused.hpp"

namespace td::kernels::cuda {

/// The modes whose factors are multiplied, the first fastest.
template <class T> struct DepthModes {
  int count;
  i64 rank;
  i64 ld; // of the product
  fused::Mode<T> modes[max_order];
};

inline constexpr i64 khatri_rao_rows = 16; // that a warp makes of 32 columns at a time, at most

/// The GPU gets as many warps as it has at a time, or more if each would have more rows than it may.
inline unsigned khatri_rao_blocks(const Gpu &device, i64 rows, i64 ld) {
  constexpr i64 warps_at_a_time = 32;
  const i64 work = rows * ((ld + warp - 1) / warp);
  const i64 warps = std::max((work + khatri_rao_rows - 1) / khatri_rao_rows,
                             std::min(work, warps_at_a_time * device.chip().multiprocessors));
  return blocks_for(device, warps, block_threads / warp);
}

/// A column of the modes' product but the first one's, whose rows are numbered by these modes.
template <class T> __device__ double others_of(const DepthModes<T> &depth, i64 row, i64 column) {
  double product = 1;
  for (int m = 1; m < depth.count; ++m) {
    const fused::Mode<T> &mode = depth.modes[m];
    const auto upper = static_cast<i64>(fused::quotient(row, mode.dim));
    product *= static_cast<double>(mode.data[(row - upper * mode.dim) * mode.ld + column]);
    row = upper;
  }
  return product;
}

/// to[k, r] := row first + k of the product, for k < rows; 0 in columns from the rank on. Each row is the first mode's
/// times a product of the others', which is made anew only where these change: a division for each number took longer
/// than to write it.
template <class T, class G> __device__ void make_khatri_rao(const DepthModes<T> &depth, i64 first, i64 rows, G *to) {
  const i64 across = (depth.ld + warp - 1) / warp;
  const i64 step = i64{gridDim.x} * (blockDim.x / warp);
  const i64 each = min(khatri_rao_rows, static_cast<i64>(fused::quotient(rows * across + step - 1, step)));
  const auto strips = static_cast<i64>(fused::quotient(rows + each - 1, each));
  const fused::Mode<T> &mode = depth.modes[0];
  for (i64 n = i64{blockIdx.x} * (blockDim.x / warp) + threadIdx.x / warp; n < strips * across; n += step) {
    const auto strip = static_cast<i64>(fused::quotient(n, across));
    const i64 r = (n - strip * across) * warp + threadIdx.x % warp;
    const bool there = r < depth.rank;
    const i64 end = r < depth.ld ? min(rows, (strip + 1) * each) : 0;
    i64 k = strip * each;
    auto upper = static_cast<i64>(fused::quotient(first + k, mode.dim));
    i64 i = first + k - upper * mode.dim;
    while (k < end) {
      const double others = there ? others_of(depth, upper, r) : 0;
      const T *from = mode.data + i * mode.ld + (there ? r : 0);
      const auto run = static_cast<int>(min(end - k, mode.dim - i));
#pragma unroll 8
      for (int j = 0; j < run; ++j, from += mode.ld)
        to[(k + j) * depth.ld + r] = static_cast<G>(there ? static_cast<double>(*from) * others : 0.0);
      k += run;
      ++upper;
      i = 0;
    }
  }
}

} // namespace td::kernels::cuda
