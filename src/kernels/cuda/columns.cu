// Sums, maxima and quotients of columns.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int ahead = 8; // rows that a thread fetches before it uses the first

struct Square {
  static constexpr bool of_two = false;
  __device__ static double term(double x, double) { return x * x; }
  __device__ static double join(double a, double b) { return a + b; }
};
struct Product {
  static constexpr bool of_two = true;
  __device__ static double term(double x, double y) { return x * y; }
  __device__ static double join(double a, double b) { return a + b; }
};
struct Magnitude {
  static constexpr bool of_two = false;
  __device__ static double term(double x, double) { return fabs(x); }
  // A NaN stays: fmax would lose it, and with it that the factors overflowed.
  __device__ static double join(double a, double b) { return b > a || isnan(b) ? b : a; }
};

/// part[block][column] := what the block's rows add; blockIdx.y counts tiles of `lanes` columns.
template <class Op, class T> __global__ void reduce_rows(Rows<const T> a, Rows<const T> b, double *part, int lanes) {
  __shared__ double sums[block_threads];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int groups = block_threads / lanes;
  const i64 r = i64{blockIdx.y} * lanes + lane;
  const i64 step = i64{gridDim.x} * groups;
  double sum = 0;
  if (r < a.cols)
    for (i64 first = i64{blockIdx.x} * groups + threadIdx.x / lanes; first < a.rows; first += ahead * step) {
      T x[ahead];
      T y[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        const i64 i = first + k * step;
        x[k] = i < a.rows ? a(i, r) : T{0};
        y[k] = Op::of_two && i < a.rows ? b(i, r) : x[k];
      }
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        sum = Op::join(sum, Op::term(static_cast<double>(x[k]), static_cast<double>(y[k])));
    }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= lanes || r >= a.cols)
    return;
  for (int g = 1; g < groups; ++g)
    sum = Op::join(sum, sums[g * lanes + lane]);
  part[blockIdx.x * a.cols + r] = sum;
}

/// A warp a column.
template <class Op> __global__ void reduce_parts(const double *part, i64 blocks, i64 columns, double *out) {
  const i64 r = blockIdx.x;
  double sum = 0;
  for (i64 b = threadIdx.x; b < blocks; b += warp)
    sum = Op::join(sum, part[b * columns + r]);
  for (int step = warp / 2; step > 0; step /= 2)
    sum = Op::join(sum, __shfl_down_sync(0xffffffffu, sum, step));
  if (threadIdx.x == 0)
    out[r] = sum;
}

template <class Op> void reduce(Gpu &device, ConstMatrix a, ConstMatrix b, double *out) {
  const int lanes = lanes_for(a.cols);
  const i64 blocks = column_blocks(a.rows, a.cols);
  const Scratch<double> part(device, blocks * a.cols, "parts of sums over columns");
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>((a.cols + lanes - 1) / lanes));
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    reduce_rows<Op><<<grid, block_threads, 0, device.stream()>>>(rows_of<T>(a), rows_of<T>(b), part.data(), lanes);
  });
  check_launch("sums over columns");
  reduce_parts<Op><<<static_cast<unsigned>(a.cols), warp, 0, device.stream()>>>(part.data(), blocks, a.cols, out);
  check_launch("sums over columns");
}

template <class T> __global__ void divide(Rows<T> a, const double *d, int lanes) {
  const int groups = block_threads / lanes;
  const i64 r = i64{blockIdx.y} * lanes + threadIdx.x % lanes;
  const double by = r < a.cols ? d[r] : 0;
  if (by == 0 || by == 1)
    return;
  const i64 step = i64{gridDim.x} * groups;
  for (i64 first = i64{blockIdx.x} * groups + threadIdx.x / lanes; first < a.rows; first += ahead * step) {
    T x[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      x[k] = first + k * step < a.rows ? a(first + k * step, r) : T{0};
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (first + k * step < a.rows)
        a(first + k * step, r) = static_cast<T>(static_cast<double>(x[k]) / by);
  }
}

__global__ void to_weights(NormKind kind, i64 rank, double *norms) {
  for (i64 r = i64{blockIdx.x} * blockDim.x + threadIdx.x; r < rank; r += i64{gridDim.x} * blockDim.x) {
    const double norm = norms[r];
    if (kind == NormKind::two)
      norms[r] = sqrt(norm);
    else if (norm != 0 && norm < 1) // a NaN stays
      norms[r] = 1;
  }
}

template <class T> __device__ void combine_columns(const Rows<const T> &parts, bool sum, T *out) {
  const i64 step = i64{gridDim.x} * blockDim.x;
  for (i64 r = i64{blockIdx.x} * blockDim.x + threadIdx.x; r < parts.cols; r += step) {
    auto x = static_cast<double>(parts(0, r));
    for (i64 i = 1; i < parts.rows; ++i) {
      const auto y = static_cast<double>(parts(i, r));
      x = sum ? x + y : Magnitude::join(x, y);
    }
    out[r] = static_cast<T>(x);
  }
}

template <class T> __global__ void combine(Rows<const T> parts, bool sum, T *out) { combine_columns(parts, sum, out); }

/// What the sums of an update are: a Gram matrix, largest magnitudes, inner products.
struct Few {
  static constexpr std::size_t most = 3;
  Rows<const double> parts[most];
  bool sum[most];
  double *out[most];
};
__global__ void combine_few(const __grid_constant__ Few all) {
  combine_columns(all.parts[blockIdx.y], all.sum[blockIdx.y], all.out[blockIdx.y]);
}

} // namespace

void CudaBackend::combine_rows(ConstMatrix parts, Combine how, void *out) {
  const CurrentDevice current = enter();
  if (parts.cols == 0)
    return;
  dispatch(parts.type, [&](auto zero) {
    using T = decltype(zero);
    combine<<<blocks_for(device_, parts.cols, block_threads), block_threads, 0, device_.stream()>>>(
        rows_of<T>(parts), how == Combine::sum, static_cast<T *>(out));
  });
  check_launch("adding up what workers have");
}

void CudaBackend::combine_all(std::span<const Combined> all) {
  Few few{};
  i64 columns = 0;
  const auto is_one_of_few = [&](const Combined &some) { return some.parts.type == ValueType::f64; };
  if (all.empty() || all.size() > Few::most || !std::all_of(all.begin(), all.end(), is_one_of_few))
    return Kernels::combine_all(all);
  for (std::size_t k = 0; k < all.size(); ++k) {
    few.parts[k] = rows_of<double>(all[k].parts);
    few.sum[k] = all[k].how == Combine::sum;
    few.out[k] = static_cast<double *>(all[k].out);
    columns = std::max(columns, all[k].parts.cols);
  }
  if (columns == 0)
    return;
  const CurrentDevice current = enter();
  const dim3 grid(blocks_for(device_, columns, block_threads), static_cast<unsigned>(all.size()));
  combine_few<<<grid, block_threads, 0, device_.stream()>>>(few);
  check_launch("adding up what workers have");
}

void CudaBackend::weights_from_norms(NormKind kind, i64 rank, double *norms) {
  const CurrentDevice current = enter();
  to_weights<<<blocks_for(device_, rank, block_threads), block_threads, 0, device_.stream()>>>(kind, rank, norms);
  check_launch("the columns' weights");
}

void CudaBackend::column_norms(ConstMatrix a, NormKind kind, double *out) {
  const CurrentDevice current = enter();
  if (kind == NormKind::two)
    reduce<Square>(device_, a, a, out);
  else
    reduce<Magnitude>(device_, a, a, out);
}

void CudaBackend::column_dots(ConstMatrix a, ConstMatrix b, double *out) {
  const CurrentDevice current = enter();
  reduce<Product>(device_, a, b, out);
}

void CudaBackend::divide_columns(Matrix a, const double *d) {
  const CurrentDevice current = enter();
  if (a.rows == 0)
    return;
  const int lanes = lanes_for(a.cols);
  const dim3 grid(blocks_for(device_, a.rows, i64{ahead} * (block_threads / lanes)),
                  static_cast<unsigned>((a.cols + lanes - 1) / lanes));
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    divide<<<grid, block_threads, 0, device_.stream()>>>(rows_of<T>(a), d, lanes);
  });
  check_launch("dividing columns");
}

} // namespace td::kernels::cuda
