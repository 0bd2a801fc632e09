// Kernels that bring elements with gaps between them together.
#pragma once

#include "core/runs.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/strided.hpp"

namespace td::kernels::cuda {

/// Where the elements of a view lie, counted in the order of its modes: neighbouring ones in runs.
struct Lying {
  i64 run; // elements that are `step` apart
  i64 step;
  i64 dims[max_order]; // of the modes that count runs
  i64 strides[max_order];
  int modes;

  explicit Lying(std::span<const i64> all_dims, std::span<const i64> all_strides) {
    const auto [leading, length] = leading_run(all_dims, all_strides);
    run = length;
    step = all_strides[0];
    modes = static_cast<int>(all_dims.size() - leading);
    std::copy(all_dims.begin() + static_cast<std::ptrdiff_t>(leading), all_dims.end(), dims);
    std::copy_n(all_strides.begin() + static_cast<std::ptrdiff_t>(leading), modes, strides);
  }
  __device__ i64 begin_of(i64 number) const {
    i64 place = 0;
    for (int m = 0; m < modes; ++m) {
      place += number % dims[m] * strides[m];
      number /= dims[m];
    }
    return place;
  }
  __device__ i64 place_of(i64 element) const { return begin_of(element / run) + element % run * step; }
};

/// A warp a run.
template <class T> __global__ void gather_runs(const __grid_constant__ Lying x, const T *from, i64 runs, T *to) {
  const i64 warps = i64{gridDim.x} * blockDim.x / 32;
  for (i64 number = (i64{blockIdx.x} * blockDim.x + threadIdx.x) / 32; number < runs; number += warps) {
    const T *const begin = from + x.begin_of(number);
    for (i64 k = threadIdx.x % 32; k < x.run; k += 32)
      to[number * x.run + k] = begin[k * x.step];
  }
}

/// The elements of a subtensor of a view come together.
inline void gather(Gpu &device, const DenseView &x, const Subtensor &subtensor, void *to) {
  const auto strides = strides_of(x);
  const Lying lying(subtensor.dims, std::span(strides).first(subtensor.dims.size()));
  i64 runs = 1;
  for (int m = 0; m < lying.modes; ++m)
    runs *= lying.dims[m];
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    gather_runs<<<blocks_for(device, runs, block_threads / 32), block_threads, 0, device.stream()>>>(
        lying, static_cast<const T *>(x.values) + subtensor.place, runs, static_cast<T *>(to));
  });
  check_launch("bringing elements together");
}

} // namespace td::kernels::cuda
