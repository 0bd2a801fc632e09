// These kernels move matrices between callers, where they are column-major, and the inside, where they are
// rank-contiguous.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/errors.hpp"
#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int tile = 32;      // rows and columns that pass through shared memory together
constexpr int tile_lines = 8; // of them a block takes at a time

/// Element (k, r) of the tall matrix is `tall(k, r)` and that of the one of columns `wide(r, rows[k])`. Both are read
/// and written along their rows. blockIdx.x counts tiles of rows, blockIdx.y those of columns.
template <bool to_tall, class Tall, class Wide>
__global__ void transpose(Rows<Tall> tall, const i64 *rows, Rows<Wide> wide) {
  using T = std::remove_const_t<Tall>;
  __shared__ T staged[tile][tile + 1];
  const i64 first_row = i64{blockIdx.x} * tile;
  const i64 first_column = i64{blockIdx.y} * tile;
  const int x = static_cast<int>(threadIdx.x);
  const i64 k = first_row + x;
  const i64 i = k < tall.rows && rows != nullptr ? rows[k] : k;
  if constexpr (to_tall) {
    for (int y = static_cast<int>(threadIdx.y); y < tile; y += tile_lines)
      if (k < tall.rows && first_column + y < tall.cols)
        staged[y][x] = wide(first_column + y, i);
  } else {
    for (int y = static_cast<int>(threadIdx.y); y < tile; y += tile_lines)
      if (first_row + y < tall.rows && first_column + x < tall.cols)
        staged[x][y] = tall(first_row + y, first_column + x);
  }
  __syncthreads();
  if constexpr (to_tall) {
    for (int y = static_cast<int>(threadIdx.y); y < tile; y += tile_lines)
      if (first_row + y < tall.rows && first_column + x < tall.cols)
        tall(first_row + y, first_column + x) = staged[x][y];
  } else {
    for (int y = static_cast<int>(threadIdx.y); y < tile; y += tile_lines)
      if (k < tall.rows && first_column + y < tall.cols)
        wide(first_column + y, i) = staged[y][x];
  }
}

dim3 tiles_of(i64 rows, i64 columns) {
  return {static_cast<unsigned>((rows + tile - 1) / tile), static_cast<unsigned>((columns + tile - 1) / tile)};
}

__global__ void find_not_finite(bool f64, const void *data, i64 rows, i64 cols, i64 ld, unsigned long long *at) {
  const i64 step = i64{gridDim.x} * blockDim.x;
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < rows * cols; k += step) {
    const i64 place = ld == cols ? k : k / cols * ld + k % cols;
    const bool finite =
        f64 ? isfinite(static_cast<const double *>(data)[place]) : isfinite(static_cast<const float *>(data)[place]);
    if (!finite)
      atomicMin(at, static_cast<unsigned long long>(k));
  }
}

/// to(k, :) := from(rows[k], :), or with `add` to(rows[k], :) += from(k, :). Neighbouring threads take neighbouring
/// columns of a row.
template <bool add, class From, class To> __global__ void move_rows(Rows<From> from, const i64 *rows, Rows<To> to) {
  const i64 step = i64{gridDim.x} * blockDim.x;
  const i64 all = add ? from.rows * from.cols : to.rows * to.cols;
  for (i64 at = i64{blockIdx.x} * blockDim.x + threadIdx.x; at < all; at += step) {
    const i64 k = at / to.cols;
    const i64 r = at % to.cols;
    if constexpr (add)
      to(rows[k], r) += from(k, r);
    else
      to(k, r) = from(rows[k], r);
  }
}

} // namespace

void CudaBackend::gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) {
  const CurrentDevice current = enter();
  if (to.rows == 0)
    return;
  dispatch(to.type, [&](auto zero) {
    using T = decltype(zero);
    transpose<true><<<tiles_of(to.rows, to.cols), dim3(tile, tile_lines), 0, device_.stream()>>>(rows_of<T>(to), rows,
                                                                                                 rows_of<T>(from));
  });
  check_launch("taking a caller's matrix");
}

void CudaBackend::scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) {
  const CurrentDevice current = enter();
  if (from.rows == 0)
    return;
  dispatch(to.type, [&](auto zero) {
    using T = decltype(zero);
    transpose<false><<<tiles_of(from.rows, from.cols), dim3(tile, tile_lines), 0, device_.stream()>>>(
        rows_of<T>(from), rows, rows_of<T>(to));
  });
  check_launch("giving a caller his matrix");
}

void CudaBackend::gather_rows(ConstMatrix from, const i64 *rows, Matrix to) {
  const CurrentDevice current = enter();
  if (to.rows == 0)
    return;
  dispatch(to.type, [&](auto zero) {
    using T = decltype(zero);
    move_rows<false><<<blocks_for(device_, to.rows * to.cols, block_threads), block_threads, 0, device_.stream()>>>(
        rows_of<T>(from), rows, rows_of<T>(to));
  });
  check_launch("rows for other processes");
}

void CudaBackend::add_rows(ConstMatrix from, const i64 *rows, Matrix to) {
  const CurrentDevice current = enter();
  if (from.rows == 0)
    return;
  dispatch(to.type, [&](auto zero) {
    using T = decltype(zero);
    move_rows<true><<<blocks_for(device_, from.rows * from.cols, block_threads), block_threads, 0, device_.stream()>>>(
        rows_of<T>(from), rows, rows_of<T>(to));
  });
  check_launch("sums of other processes");
}

void CudaBackend::first_not_finite(ConstMatrix a, i64 *at) {
  const CurrentDevice current = enter();
  const i64 all = a.rows * a.cols;
  check(cudaMemcpyAsync(at, &all, sizeof all, cudaMemcpyHostToDevice, device_.stream()), "the size of a matrix");
  if (all == 0)
    return;
  const i64 ld = a.rows == 1 ? a.cols : a.ld;
  find_not_finite<<<blocks_for(device_, all, i64{block_threads} * 8), block_threads, 0, device_.stream()>>>(
      a.type == ValueType::f64, a.data, a.rows, a.cols, ld, reinterpret_cast<unsigned long long *>(at));
  check_launch("looking for what is not finite");
}

} // namespace td::kernels::cuda
