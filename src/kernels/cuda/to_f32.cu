// Factors and sums in f32.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int ahead = 8; // rows that a thread fetches before it uses the first

/// largest[r] := the exponent that brings it into [1/2, 1); 0 for what is 0 or not finite.
__global__ void to_exponents(i64 rank, double *largest) {
  for (i64 r = i64{blockIdx.x} * blockDim.x + threadIdx.x; r < rank; r += i64{gridDim.x} * blockDim.x) {
    int exponent = 0;
    if (isfinite(largest[r]))
      frexp(largest[r], &exponent);
    largest[r] = exponent;
  }
}

/// blockIdx.y counts tiles of `lanes` columns.
__global__ void round_rows(Rows<const double> a, Rows<float> to, const double *exponents, int lanes) {
  const int groups = block_threads / lanes;
  const i64 r = i64{blockIdx.y} * lanes + threadIdx.x % lanes;
  if (r >= to.cols)
    return;
  const bool there = r < a.cols;
  // Two powers: 2^1074, which the smallest number may need, is above the range.
  const int exponent = there && exponents != nullptr ? -static_cast<int>(exponents[r]) : 0;
  const double half = scalbn(1.0, exponent / 2);
  const double rest = scalbn(1.0, exponent - exponent / 2);
  const i64 step = i64{gridDim.x} * groups;
  for (i64 first = i64{blockIdx.x} * groups + threadIdx.x / lanes; first < a.rows; first += ahead * step) {
    double x[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      x[k] = there && first + k * step < a.rows ? a(first + k * step, r) : 0.0;
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (first + k * step < a.rows)
        to(first + k * step, r) = static_cast<float>(x[k] * half * rest);
  }
}

} // namespace

void CudaBackend::to_f32(ConstMatrix a, Matrix to, double *exponents) {
  const CurrentDevice current = enter();
  if (exponents != nullptr) {
    column_norms(a, NormKind::max, exponents);
    to_exponents<<<blocks_for(device_, a.cols, block_threads), block_threads, 0, device_.stream()>>>(a.cols, exponents);
    check_launch("finding the exponents of columns");
  }
  if (a.rows == 0)
    return;
  const int lanes = lanes_for(to.cols);
  const dim3 grid(blocks_for(device_, a.rows, i64{ahead} * (block_threads / lanes)),
                  static_cast<unsigned>((to.cols + lanes - 1) / lanes));
  round_rows<<<grid, block_threads, 0, device_.stream()>>>(rows_of<double>(a), rows_of<float>(to), exponents, lanes);
  check_launch("rounding to f32");
}

} // namespace td::kernels::cuda
