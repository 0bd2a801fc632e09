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

} // namespace td::kernels::cuda
