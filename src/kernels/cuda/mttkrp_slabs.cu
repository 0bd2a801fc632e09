// The partial product of a dense tensor that keeps its first and last mode: of each slab a matrix times the Khatri-Rao
// product of the modes in between. A thread has a row of the result, its columns in registers: neighbouring threads
// read neighbouring elements, each once a pass over columns, and rows of the Khatri-Rao product come from shared
// memory, where all threads ask for the same number at a time.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int slab_depth = 32; // Khatri-Rao rows in shared memory
constexpr int slab_ahead = 8;  // elements that a thread fetches before it uses the first

template <class T> struct Between {
  int count;
  Rows<const T> factors[max_order];
};

/// to[s][r] := product over the modes in between, the first running fastest.
template <class T>
__global__ void multiply_between(const __grid_constant__ Between<T> modes, i64 depth, i64 rank, double *to) {
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < depth * rank; k += i64{gridDim.x} * blockDim.x) {
    i64 rest = k / rank;
    double product = 1;
    for (int m = 0; m < modes.count; ++m) {
      product *= static_cast<double>(modes.factors[m](rest % modes.factors[m].rows, k % rank));
      rest /= modes.factors[m].rows;
    }
    to[k] = product;
  }
}

/// blockIdx.y counts passes of `Columns` columns.
template <class T, int Columns>
__global__ void __launch_bounds__(block_threads)
    multiply_slabs(const T *x, i64 left, i64 depth, const double *products, Rows<T> out) {
  __shared__ double staged[slab_depth][Columns];
  const i64 first = i64{blockIdx.y} * Columns;
  const i64 columns = min(i64{Columns}, out.cols - first);
  for (i64 begin = i64{blockIdx.x} * block_threads; begin < out.rows; begin += i64{gridDim.x} * block_threads) {
    const i64 cell = min(begin + threadIdx.x, out.rows - 1);
    const T *const from = x + cell % left + left * depth * (cell / left);
    double sums[Columns] = {};
    for (i64 s = 0; s < depth; s += slab_depth) {
      const int here = static_cast<int>(min(i64{slab_depth}, depth - s));
      __syncthreads();
      for (int k = static_cast<int>(threadIdx.x); k < slab_depth * Columns; k += block_threads) {
        const int row = k / Columns;
        const int column = k % Columns;
        staged[row][column] = row < here && column < columns ? products[(s + row) * out.cols + first + column] : 0;
      }
      __syncthreads();
      for (int k = 0; k < here; k += slab_ahead) {
        T some[slab_ahead];
#pragma unroll
        for (int a = 0; a < slab_ahead; ++a)
          some[a] = k + a < here ? from[(s + k + a) * left] : T{0};
#pragma unroll
        for (int a = 0; a < slab_ahead; ++a)
#pragma unroll
          for (int c = 0; c < Columns; ++c)
            sums[c] += static_cast<double>(some[a]) * staged[k + a][c];
      }
    }
    if (begin + threadIdx.x < out.rows)
#pragma unroll
      for (int c = 0; c < Columns; ++c)
        if (c < columns)
          out(cell, first + c) = static_cast<T>(sums[c]);
  }
}

template <class T, int Columns>
void launch(Gpu &device, const DenseView &x, i64 depth, const double *products, Matrix out) {
  const dim3 grid(blocks_for(device, out.rows, block_threads),
                  static_cast<unsigned>((out.cols + Columns - 1) / Columns));
  multiply_slabs<T, Columns><<<grid, block_threads, 0, device.stream()>>>(static_cast<const T *>(x.values), x.dims[0],
                                                                          depth, products, rows_of<T>(out));
  check_launch("a partial product of slabs");
}

} // namespace

void CudaBackend::mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out) {
  const CurrentDevice current = enter();
  if (out.rows == 0)
    return;
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    Between<T> between{};
    i64 depth = 1;
    for (std::size_t m = 1; m + 1 < x.dims.size(); ++m) {
      between.factors[between.count++] = rows_of<T>(factors[m]);
      depth *= x.dims[m];
    }
    const Scratch<double> products(device_, depth * out.cols, "rows of a Khatri-Rao product");
    multiply_between<<<blocks_for(device_, depth * out.cols, block_threads), block_threads, 0, device_.stream()>>>(
        between, depth, out.cols, products.data());
    check_launch("a Khatri-Rao product");
    switch (slab_columns(out.cols)) {
    case 8:
      return launch<T, 8>(device_, x, depth, products.data(), out);
    case 16:
      return launch<T, 16>(device_, x, depth, products.data(), out);
    default:
      return launch<T, 32>(device_, x, depth, products.data(), out);
    }
  });
}

} // namespace td::kernels::cuda
