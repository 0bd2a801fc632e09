// A tall matrix times an R x R one, in place or not: a warp holds 32 rows and reads all of them before it writes any.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matrix.hpp"
#include "kernels/cuda/mma.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int warps = 4;
constexpr int ahead = 4; // times four columns that a warp fetches before it uses the first
constexpr i64 staged_bytes = i64{64} << 20;

/// to[:, blockIdx.y-th tile of columns] := m p
template <class T>
__global__ void __launch_bounds__(warps *warp)
    multiply_tile(Rows<const T> m, const double *__restrict__ p, Rows<T> to) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const i64 first_column = i64{blockIdx.y} * mma_tile;
  const i64 step = i64{gridDim.x} * warps * mma_tile;
  for (i64 first = (i64{blockIdx.x} * warps + threadIdx.x / warp) * mma_tile; first < m.rows; first += step) {
    double d[4][4][2] = {};
    for (i64 k = 0; k < m.cols; k += 4 * ahead) {
      double u[ahead][4];
      double v[ahead][4];
#pragma unroll
      for (int g = 0; g < ahead; ++g) {
        const i64 inner = k + g * 4 + lane % 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const i64 row = first + i * 8 + lane / 4;
          u[g][i] = row < m.rows && inner < m.cols ? static_cast<double>(m(row, inner)) : 0.0;
          const i64 column = first_column + i * 8 + lane / 4;
          v[g][i] = inner < m.cols && column < to.cols ? p[inner * to.cols + column] : 0.0;
        }
      }
#pragma unroll
      for (int g = 0; g < ahead; ++g)
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            mma(u[g][i], v[g][j], d[i][j]);
    }
    __syncwarp(); // `to` may be m
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const i64 row = first + i * 8 + lane / 4;
          const i64 column = first_column + j * 8 + 2 * (lane % 4) + k;
          if (row < m.rows && column < to.cols)
            to(row, column) = static_cast<T>(d[i][j][k]);
        }
  }
}

template <class T> void multiply_rows(Device &device, ConstMatrix m, const double *p, Matrix a) {
  const dim3 grid(blocks_for(device, m.rows, i64{warps} * mma_tile),
                  static_cast<unsigned>((a.cols + mma_tile - 1) / mma_tile));
  multiply_tile<<<grid, warps * warp, 0, device.stream()>>>(rows_of<T>(m), p, rows_of<T>(a));
  check_launch("a product with an R x R matrix");
}

} // namespace

void multiply(Device &device, ConstMatrix m, const double *p, Matrix a) {
  if (m.rows == 0)
    return;
  dispatch(m.type, [&](auto zero) {
    using T = decltype(zero);
    if (m.data != a.data || a.cols <= mma_tile)
      return multiply_rows<T>(device, m, p, a);
    // Several warps read a row, each for its own columns, so the result is kept apart until all have read.
    const i64 row_bytes = a.cols * size_of(a.type);
    const i64 rows = std::clamp<i64>(staged_bytes / row_bytes, 1, m.rows);
    const Scratch<T> staged(device, rows * a.cols, "rows of a product");
    for (i64 begin = 0; begin < m.rows; begin += rows) {
      const i64 end = std::min(begin + rows, m.rows);
      const Matrix some{staged.data(), a.type, end - begin, a.cols, a.cols};
      multiply_rows<T>(device, m.slice(begin, end), p, some);
      check(cudaMemcpy2DAsync(a.slice(begin, end).data, static_cast<std::size_t>(a.ld * size_of(a.type)), some.data,
                              static_cast<std::size_t>(row_bytes), static_cast<std::size_t>(row_bytes),
                              static_cast<std::size_t>(some.rows), cudaMemcpyDeviceToDevice, device.stream()),
            "copying rows of a product");
    }
  });
}

} // namespace td::kernels::cuda
