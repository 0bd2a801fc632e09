// y := X X^T omega for an unfolding X, as X (X^T omega): first a row of z = X^T omega for each column of X, that is for
// each fiber of the tensor, then the rows of y, each summed by one group in a fixed order.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/by_row.hpp"
#include "kernels/cuda/entries.cuh"
#include "kernels/cuda/refuse.hpp"
#include "kernels/cuda/strided.cuh"

namespace td::kernels::cuda {

namespace {

constexpr i64 z_bytes = i64{256} << 20; // of z at a time

/// Where a dense tensor's fiber begins: those of `mode` are counted with the modes before it fastest.
template <class T> struct DenseFibers {
  const T *values;
  i64 left; // product of the dims before the mode: the step within a fiber
  i64 length;
  __device__ T operator()(i64 fiber, i64 i) const {
    return values[fiber % left + left * (i + length * (fiber / left))];
  }
};

/// The same with gaps, or of fibers that are not so numbered: those before the mode, and those after it, are counted as
/// they lie.
template <class T> struct LyingFibers {
  const T *values;
  Lying others; // of a tensor in which the mode has one index
  i64 row;
  i64 length;
  __device__ T operator()(i64 fiber, i64 i) const { return values[others.place_of(fiber) + i * row]; }
};

template <class Fibers>
__global__ void dense_z(const __grid_constant__ Fibers x, Range fibers, Rows<const double> omega, double *z,
                        int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const i64 groups = i64{gridDim.x} * blockDim.x / lanes;
  for (i64 f = fibers.begin + (i64{blockIdx.x} * blockDim.x + threadIdx.x) / lanes; f < fibers.end; f += groups)
    for (i64 c = lane; c < omega.cols; c += lanes) {
      double sum = 0;
      for (i64 i = 0; i < x.length; ++i)
        sum += static_cast<double>(x(f, i)) * omega(i, c);
      z[(f - fibers.begin) * omega.cols + c] = sum;
    }
}

/// A block a row: its groups of lanes share the fibers.
template <class Fibers>
__global__ void dense_y(const __grid_constant__ Fibers x, Range fibers, const double *z, Rows<double> y, int lanes) {
  __shared__ double sums[block_threads];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes;
  const int groups = block_threads / lanes;
  for (i64 i = blockIdx.x; i < y.rows; i += gridDim.x)
    for (i64 first = 0; first < y.cols; first += lanes) {
      const i64 c = first + lane;
      double sum = 0;
      for (i64 f = fibers.begin + group; f < fibers.end && c < y.cols; f += groups)
        sum += static_cast<double>(x(f, i)) * z[(f - fibers.begin) * y.cols + c];
      sums[threadIdx.x] = sum;
      __syncthreads();
      if (group == 0 && c < y.cols) {
        for (int g = 1; g < groups; ++g)
          sum += sums[g * lanes + lane];
        y(i, c) += sum;
      }
      __syncthreads();
    }
}

template <class Fibers> void sum_fibers(Gpu &device, const Fibers &fibers, i64 count, ConstMatrix omega, Matrix y) {
  const i64 at_once = std::clamp<i64>(z_bytes / (8 * omega.cols), 1, count);
  const Scratch<double> z(device, at_once * omega.cols, "X^T omega");
  const int lanes = lanes_for(omega.cols);
  for (i64 begin = 0; begin < count; begin += at_once) {
    const Range some{begin, std::min(begin + at_once, count)};
    dense_z<<<blocks_for(device, some.size(), block_threads / lanes), block_threads, 0, device.stream()>>>(
        fibers, some, rows_of<double>(omega), z.data(), lanes);
    check_launch("X^T omega");
    dense_y<<<blocks_for(device, y.rows, 1), block_threads, 0, device.stream()>>>(fibers, some, z.data(),
                                                                                  rows_of<double>(y), lanes);
    check_launch("X X^T omega");
  }
}

template <class T> void dense(Gpu &device, const DenseView &x, int given_mode, ConstMatrix omega, Matrix y) {
  const InMemoryOrder ordered(x);
  const DenseView &view = ordered.view();
  const auto mode = static_cast<std::size_t>(ordered.place_of(given_mode));
  const auto *const values = static_cast<const T *>(x.values);
  const i64 length = view.dims[mode];
  const i64 count = entries_of(x) / length;
  const auto strides = strides_of(view);
  if (view.strides.empty())
    return sum_fibers(device, DenseFibers<T>{values, strides[mode], length}, count, omega, y);
  std::vector<i64> others(view.dims.begin(), view.dims.end());
  others[mode] = 1;
  const Lying lying(others, std::span(strides).first(others.size()));
  sum_fibers(device, LyingFibers<T>{values, lying, strides[mode], length}, count, omega, y);
}

/// 1 where a fiber begins, else 0.
template <class T> __global__ void mark_fibers(const __grid_constant__ CooEntries<T> x, int mode, i64 nnz, i64 *mark) {
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < nnz; k += i64{gridDim.x} * blockDim.x) {
    bool begins = k == 0;
    for (int m = 0; m < x.order && !begins; ++m)
      begins = m != mode && x.index(k, m) != x.index(k - 1, m);
    mark[k] = begins ? 1 : 0;
  }
}

/// number[k], the running sum of the marks, counts from 1: fiber f's entries are those with f + 1.
template <class T>
__global__ void sparse_z(const __grid_constant__ CooEntries<T> x, int mode, const i64 *number, i64 nnz, i64 fibers,
                         Rows<const double> omega, double *z, int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const i64 groups = i64{gridDim.x} * blockDim.x / lanes;
  for (i64 f = (i64{blockIdx.x} * blockDim.x + threadIdx.x) / lanes; f < fibers; f += groups) {
    const i64 begin = lower_bound(number, 0, nnz, f + 1);
    for (i64 c = lane; c < omega.cols; c += lanes) {
      double sum = 0;
      for (i64 k = begin; k < nnz && number[k] == f + 1; ++k)
        sum += static_cast<double>(x.values[k]) * omega(x.index(k, mode), c);
      z[f * omega.cols + c] = sum;
    }
  }
}

template <class T>
__global__ void sparse_y(const __grid_constant__ CooEntries<T> x, const i64 *number, const u64 *row, const i64 *entry,
                         i64 nnz, const double *z, Rows<double> y, int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const i64 groups = i64{gridDim.x} * blockDim.x / lanes;
  for (i64 i = (i64{blockIdx.x} * blockDim.x + threadIdx.x) / lanes; i < y.rows; i += groups) {
    const i64 begin = lower_bound(row, 0, nnz, static_cast<u64>(i));
    for (i64 c = lane; c < y.cols; c += lanes) {
      double sum = 0;
      for (i64 k = begin; k < nnz && row[k] == static_cast<u64>(i); ++k)
        sum += static_cast<double>(x.values[entry[k]]) * z[(number[entry[k]] - 1) * y.cols + c];
      y(i, c) += sum;
    }
  }
}

__global__ void number_rows(const i64 *index, i64 nnz, u64 *row, i64 *entry) {
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < nnz; k += i64{gridDim.x} * blockDim.x) {
    row[k] = static_cast<u64>(index[k]);
    entry[k] = k;
  }
}

template <class T> void sparse(Gpu &device, const CooView &view, int mode, ConstMatrix omega, Matrix y) {
  const i64 nnz = view.nnz;
  if (nnz == 0)
    return;
  const CooEntries<T> x(view);
  const unsigned blocks = blocks_for(device, nnz, block_threads);
  const Scratch<i64> mark(device, nnz, "the fibers of a tensor");
  const Scratch<i64> number(device, nnz, "the fibers of a tensor");
  mark_fibers<<<blocks, block_threads, 0, device.stream()>>>(x, mode, nnz, mark.data());
  check_launch("finding fibers");
  running_sum(device, mark.data(), nnz, number.data());
  ByRow order(device, nnz);
  number_rows<<<blocks, block_threads, 0, device.stream()>>>(view.indices[mode], nnz, order.row(), order.number());
  check_launch("finding fibers");
  order.sort(static_cast<u64>(y.rows));
  i64 fibers = 0;
  device.download(&fibers, number.data() + nnz - 1, sizeof fibers);

  const i64 columns = std::clamp<i64>(z_bytes / (8 * fibers), 1, omega.cols);
  const Scratch<double> z(device, fibers * columns, "X^T omega");
  for (i64 begin = 0; begin < omega.cols; begin += columns) {
    const i64 end = std::min(begin + columns, omega.cols);
    const int lanes = lanes_for(end - begin);
    const int each = block_threads / lanes;
    sparse_z<<<blocks_for(device, fibers, each), block_threads, 0, device.stream()>>>(
        x, mode, number.data(), nnz, fibers, rows_of<double>(omega.columns(begin, end)), z.data(), lanes);
    check_launch("X^T omega");
    sparse_y<<<blocks_for(device, y.rows, each), block_threads, 0, device.stream()>>>(
        x, number.data(), order.row(), order.number(), nnz, z.data(), rows_of<double>(y.columns(begin, end)), lanes);
    check_launch("X X^T omega");
  }
}

} // namespace

void CudaBackend::unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) {
  const CurrentDevice current = enter();
  if (!add)
    set_zero(y);
  dispatch(type_of(x), [&](auto zero) {
    using T = decltype(zero);
    if (const auto *view = std::get_if<DenseView>(&x))
      dense<T>(device_, *view, mode, omega, y);
    else if (const auto *coo = std::get_if<CooView>(&x))
      sparse<T>(device_, *coo, mode, omega, y);
    else
      refuse_unfolding(x.index());
  });
}

} // namespace td::kernels::cuda
