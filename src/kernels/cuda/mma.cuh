// D := A B + D of an 8 x 4 and a 4 x 8 matrix in f64 on the tensor cores (mma.m8n8k4, compute capability 8.0), each
// product and sum rounded as a fused multiply-add. Lane t of a warp holds A[t / 4][t % 4], B[t % 4][t / 4] and
// D[t / 4][2 * (t % 4)] with its neighbour to the right.
#pragma once

namespace td::kernels::cuda {

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

} // namespace td::kernels::cuda
