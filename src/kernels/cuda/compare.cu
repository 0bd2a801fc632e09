#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/entries.cuh"

namespace td::kernels::cuda {

namespace {

constexpr i64 most_blocks = 1024;

/// x[0 .. 3) := their sums over the block, in thread 0.
__device__ void sum_over_block(double (&x)[3]) {
  __shared__ double sums[3][block_threads];
  for (int k = 0; k < 3; ++k)
    sums[k][threadIdx.x] = x[k];
  for (int step = block_threads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < step)
      for (int k = 0; k < 3; ++k)
        sums[k][threadIdx.x] += sums[k][threadIdx.x + step];
  }
  for (int k = 0; k < 3; ++k)
    x[k] = sums[k][0];
}

/// A group of lanes an entry; part[block] := the sums over the block's entries.
template <class Entries, class T>
__global__ void compare_entries(const __grid_constant__ Entries x, const __grid_constant__ Factors<T> factors,
                                const double *weights, i64 rank, Range entries, double *part, int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const i64 groups = i64{gridDim.x} * blockDim.x / lanes;
  const i64 own = (i64{blockIdx.x} * blockDim.x + threadIdx.x) / lanes;
  double sums[3] = {};
  // All groups of a warp go round equally often: lanes are summed over with the whole warp.
  for (i64 first = entries.begin; first < entries.end; first += groups) {
    const i64 k = first + own;
    const bool there = k < entries.end;
    double model = 0;
    if (there) {
      const auto entry = x.at(k);
      for (i64 r = lane; r < rank; r += lanes) {
        double product = weights[r];
        for (int m = 0; m < x.order; ++m)
          product *= static_cast<double>(factors(m, x.index(entry, m), r));
        model += product;
      }
    }
    model = sum_over_lanes(model, lanes);
    if (there && lane == 0) {
      const double value = static_cast<double>(value_of(x, k));
      sums[0] += (value - model) * (value - model);
      sums[1] += model * model;
      sums[2] += value * model;
    }
  }
  sum_over_block(sums);
  if (threadIdx.x == 0)
    for (int k = 0; k < 3; ++k)
      part[3 * blockIdx.x + k] = sums[k];
}

/// One block.
__global__ void add_parts(const double *part, i64 parts, double *out) {
  double sums[3] = {};
  for (i64 p = threadIdx.x; p < parts; p += block_threads)
    for (int k = 0; k < 3; ++k)
      sums[k] += part[3 * p + k];
  sum_over_block(sums);
  if (threadIdx.x == 0)
    for (int k = 0; k < 3; ++k)
      out[k] = sums[k];
}

template <class T, class Entries>
void run(Gpu &device, const Entries &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
         double *out) {
  const i64 rank = factors.front().cols;
  const int lanes = lanes_for(rank);
  const i64 blocks = std::clamp<i64>(entries.size() * lanes / (4 * block_threads), 1, most_blocks);
  const Scratch<double> part(device, 3 * blocks, "parts of a residual");
  compare_entries<<<static_cast<unsigned>(blocks), block_threads, 0, device.stream()>>>(
      x, Factors<T>(factors), weights, rank, entries, part.data(), lanes);
  check_launch("a residual");
  add_parts<<<1, block_threads, 0, device.stream()>>>(part.data(), blocks, out);
  check_launch("a residual");
}

} // namespace

void CudaBackend::compare(const TensorView &view, const double *weights, std::span<const ConstMatrix> factors,
                          Range entries, double *out) {
  const CurrentDevice current = enter();
  dispatch(type_of(view), [&](auto zero) {
    using T = decltype(zero);
    const auto with = [&](const auto &x) { run<T>(device_, x, weights, factors, entries, out); };
    if (const auto *coo = std::get_if<CooView>(&view))
      with(CooEntries<T>(*coo));
    else if (const auto *blco = std::get_if<BlcoView>(&view))
      with(BlcoEntries<T>(*blco));
    else if (const auto *sorted = std::get_if<SortedView>(&view))
      with_keys<T>(*sorted, with);
    else
      with(DenseEntries<T>(std::get<DenseView>(view)));
  });
}

} // namespace td::kernels::cuda
