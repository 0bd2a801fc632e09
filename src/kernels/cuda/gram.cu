// A^T A of a tall matrix of more columns than solve_narrow.cu takes. cuBLAS takes no f32 input with f64 sums and is not
// made for few columns of millions of rows; here a warp reads rows once, four at a time, and both operands are the same
// registers: the lane that holds an entry of A^T as the left operand holds the same entry as the right one.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/solve.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int warps = 4;
constexpr int ahead = 4; // times four rows that a warp fetches before it uses the first

/// Entries of four rows, eight columns: lane t holds row t % 4, column t / 4; zero outside the matrix.
template <class T> __device__ double entry(const Rows<const T> &a, i64 row, i64 column) {
  return row < a.rows && column < a.cols ? static_cast<double>(a(row, column)) : 0.0;
}

/// part[block][pair][32 x 32] := what the block's rows add to one tile of the Gram matrix; blockIdx.x is the pair of
/// column tiles, counted over the upper triangle row by row, of which there may be more than a grid has in y.
template <class T> __global__ void __launch_bounds__(warps *warp) gram_parts(Rows<const T> a, i64 tiles, double *part) {
  __shared__ double sums[mma_tile * mma_tile];
  i64 left = 0;
  i64 right = blockIdx.x;
  for (; right >= tiles - left; ++left)
    right -= tiles - left;
  right += left;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int own = static_cast<int>(threadIdx.x) / warp;
  TileEntries d = {};
  const i64 step = i64{gridDim.y} * warps * 4 * ahead;
  for (i64 first = (i64{blockIdx.y} * warps + own) * 4 * ahead; first < a.rows; first += step) {
    double u[ahead][4];
    double v[ahead][4];
#pragma unroll
    for (int g = 0; g < ahead; ++g)
#pragma unroll
      for (int c = 0; c < 4; ++c)
        u[g][c] = v[g][c] = entry(a, first + g * 4 + lane % 4, left * mma_tile + c * 8 + lane / 4);
    if (left != right)
#pragma unroll
      for (int g = 0; g < ahead; ++g)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          v[g][c] = entry(a, first + g * 4 + lane % 4, right * mma_tile + c * 8 + lane / 4);
#pragma unroll
    for (int g = 0; g < ahead; ++g)
#pragma unroll
      for (int i = 0; i < 4; i += 2)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          mma(u[g][i], u[g][i + 1], v[g][j], d[i][j], d[i + 1][j]);
  }
  for (int w = 0; w < warps; ++w) { // one warp after the other, so that the order of sums is fixed
    if (own == w)
      for_entries(d, [&](int i, int column, double x) {
        double &sum = sums[i * mma_tile + column];
        sum = w == 0 ? x : sum + x;
      });
    __syncthreads();
  }
  double *to = part + (i64{blockIdx.y} * gridDim.x + blockIdx.x) * mma_tile * mma_tile;
  for (int k = static_cast<int>(threadIdx.x); k < mma_tile * mma_tile; k += warps * warp)
    to[k] = sums[k];
}

/// g := the sum over blocks; each entry also to its mirror image. 32 x 32 threads, one row of a tile a block.
__global__ void gram_sum(const double *part, i64 blocks, i64 pairs, i64 tiles, i64 columns, double *g) {
  __shared__ double sums[mma_tile][mma_tile + 1];
  i64 left = 0;
  i64 right = blockIdx.x;
  for (; right >= tiles - left; ++left)
    right -= tiles - left;
  right += left;
  const double *from = part + i64{blockIdx.x} * mma_tile * mma_tile + blockIdx.y * mma_tile + threadIdx.x;
  double sum = 0;
  for (i64 b = threadIdx.y; b < blocks; b += mma_tile)
    sum += from[b * pairs * mma_tile * mma_tile];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0)
    return;
  for (int k = 1; k < mma_tile; ++k)
    sum += sums[k][threadIdx.x];
  const i64 i = left * mma_tile + blockIdx.y;
  const i64 j = right * mma_tile + threadIdx.x;
  if (i < columns && j < columns && (left != right || i <= j)) {
    g[i * columns + j] = sum;
    g[j * columns + i] = sum;
  }
}

} // namespace

void CudaBackend::gram(ConstMatrix a, double *g) {
  const CurrentDevice current = enter();
  if (a.cols <= mma_tile)
    return gram_narrow(device_, a, g);
  const i64 tiles = (a.cols + mma_tile - 1) / mma_tile;
  const i64 pairs = gram_pairs(a.cols);
  const i64 blocks = gram_blocks(a.rows, a.cols);
  const Scratch<double> part(device_, blocks * pairs * mma_tile * mma_tile, "parts of a Gram matrix");
  const dim3 grid(static_cast<unsigned>(pairs), static_cast<unsigned>(blocks));
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    gram_parts<<<grid, warps * warp, 0, device_.stream()>>>(rows_of<T>(a), tiles, part.data());
  });
  check_launch("a Gram matrix");
  gram_sum<<<dim3(static_cast<unsigned>(pairs), mma_tile), dim3(mma_tile, mma_tile), 0, device_.stream()>>>(
      part.data(), blocks, pairs, tiles, a.cols, g);
  check_launch("a Gram matrix");
}

} // namespace td::kernels::cuda
