#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/philox.hpp"

namespace td::kernels::cuda {

namespace {

template <class T> __global__ void fill(Rows<T> a, u64 seed, int mode, i64 first_row) {
  const i64 pairs = (a.cols + 1) / 2;
  const i64 count = a.rows * pairs;
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < count; k += i64{gridDim.x} * blockDim.x) {
    const i64 i = k / pairs;
    const i64 pair = k % pairs;
    const auto bits = random_pair(seed, mode, first_row + i, pair);
    a(i, 2 * pair) = unit_interval<T>(bits[0]);
    if (2 * pair + 1 < a.cols)
      a(i, 2 * pair + 1) = unit_interval<T>(bits[1]);
  }
}

} // namespace

void CudaBackend::random_uniform(Matrix a, u64 seed, int mode, i64 first_row) {
  const CurrentDevice current = enter();
  if (a.rows == 0)
    return;
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    fill<<<blocks_for(device_, a.rows * ((a.cols + 1) / 2), block_threads), block_threads, 0, device_.stream()>>>(
        rows_of<T>(a), seed, mode, first_row);
  });
  check_launch("random numbers");
}

} // namespace td::kernels::cuda
