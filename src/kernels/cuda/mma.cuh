// D := A B + D of an 8 x 4 and a 4 x 8 matrix in f64 on the tensor cores (mma.m8n8k4, compute capability 8.0), each
// product and sum rounded as a fused multiply-add. Lane t of a warp holds A[t / 4][t % 4], B[t % 4][t / 4] and
// D[t / 4][2 * (t % 4)] with its neighbour to the right.
#pragma once

#include <type_traits>

#include "core/types.hpp"
#include "kernels/cuda/sizes.hpp"

namespace td::kernels::cuda {

using u32 = std::uint32_t;

__device__ inline void mma(double a, double b, double (&d)[2]) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d[0]), "+d"(d[1])
               : "d"(a), "d"(b));
}

/// The same of 16 x 4: rows t / 4 and t / 4 + 8. One instruction from compute capability 9.0 on.
__device__ inline void mma(double a0, double a1, double b, double (&d0)[2], double (&d1)[2]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(d0[0]), "+d"(d0[1]), "+d"(d1[0]), "+d"(d1[1])
      : "d"(a0), "d"(a1), "d"(b));
#else
  mma(a0, b, d0);
  mma(a1, b, d1);
#endif
}

/// Entries of a matrix of 32 columns in a warp, as sums of mma: lane t holds rows t / 4 + 8 i, columns
/// 8 j + 2 (t % 4) + k.
template <int Rows> using RowEntries = double[Rows / 8][4][2];
using TileEntries = RowEntries<mma_tile>;

/// Calls f(row, column, entry) with those of the lane.
template <class Entries, class F> __device__ inline void for_entries(Entries &entries, F &&f) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
#pragma unroll
  for (int i = 0; i < static_cast<int>(std::extent_v<std::remove_const_t<Entries>>); ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int k = 0; k < 2; ++k)
        f(i * 8 + lane / 4, j * 8 + 2 * (lane % 4) + k, entries[i][j][k]);
}

/// What TensorFloat-32 holds of a number, rounded to its 11 bits, and what is left of it: the next 12. The number is
/// below 2^127.
__device__ inline u32 tf32_of(float x) { return (__float_as_uint(x) + 0x1000) & 0xffffe000u; }
__device__ inline u32 rest_of(float x, u32 high) { return __float_as_uint(x - __uint_as_float(high)); }

/// D := A B + D of a 16 x 8 and an 8 x 8 matrix in TensorFloat-32, of which 11 bits are read; sums are f32. Lane t of a
/// warp holds A[t / 4 + 8 (e % 2)][t % 4 + 4 (e / 2)] and B[t % 4 + 4 e][t / 4], D as for f64.
__device__ inline void mma(const u32 (&a)[4], u32 b0, u32 b1, float (&d)[4]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace td::kernels::cuda
