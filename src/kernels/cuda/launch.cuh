// How kernels here are laid out: groups of lanes, each with an entry or a row, whose lanes take its columns.
#pragma once

#include <algorithm>

#include "core/views.hpp"
#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/sizes.hpp"

namespace td::kernels::cuda {

/// Blocks for `work` items of which a block takes `each` at a time and goes on with the next until none are left.
inline unsigned blocks_for(const Gpu &device, i64 work, i64 each) {
  const i64 most = i64{32} * device.multiprocessors();
  return static_cast<unsigned>(std::clamp<i64>((work + each - 1) / each, 1, most));
}

/// Lets blocks of a kernel have up to `most` bytes of dynamic shared memory. The bound belongs to the kernel on a GPU,
/// not to a launch: of two threads that set what each one's launch needs, one would lower it between the other's call
/// of this and its launch, which CUDA then refuses. So `most` is one number for a kernel on a GPU, whatever a launch
/// needs.
template <class... Args> void allow_shared(void (*kernel)(Args...), i64 most) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)),
        "asking for shared memory");
}

/// Calls f(row, term) with values of the types of factors' rows and of terms, sums and the result: one type, or f32
/// and f64.
template <class F> void dispatch_mixed(ValueType rows, ValueType terms, F &&f) {
  if (rows == terms)
    dispatch(rows, [&](auto zero) { f(zero, zero); });
  else
    f(float{}, double{});
}

/// The first k in [begin, end) with !(a[k] < x), or end.
template <class T> __device__ inline i64 lower_bound(const T *a, i64 begin, i64 end, T x) {
  while (begin < end) {
    const i64 middle = begin + (end - begin) / 2;
    if (a[middle] < x)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/// The part that k belongs to, of parts that begin at begin[0 .. parts].
__device__ inline i64 part_holding(const i64 *begin, i64 parts, i64 k) {
  return lower_bound(begin, 0, parts + 1, k + 1) - 1;
}

/// Lane 0 of each group of `lanes` neighbours gets the sum over the group, in an order that depends on nothing else.
__device__ inline double sum_over_lanes(double x, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2)
    x += __shfl_down_sync(0xffffffffu, x, step, lanes);
  return x;
}

/// A matrix with T for its type.
template <class T> struct Rows {
  T *data;
  i64 rows, cols, ld;
  __device__ T &operator()(i64 i, i64 r) const { return data[i * ld + r]; }
};
template <class T> Rows<T> rows_of(const Matrix &a) { return {static_cast<T *>(a.data), a.rows, a.cols, a.ld}; }
template <class T> Rows<const T> rows_of(const ConstMatrix &a) {
  return {static_cast<const T *>(a.data), a.rows, a.cols, a.ld};
}

} // namespace td::kernels::cuda
