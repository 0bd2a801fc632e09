// What a GPU can do, measured with loops like those of the kernels.

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>

#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

namespace {

constexpr const char *what = "measuring what the GPU can do";

// Rows of 256 bytes: 32 numbers in f64.
constexpr int row_lanes = 16; // that fetch one, 16 bytes each
constexpr i64 row_bytes = 256;
constexpr i64 near_rows = 128;              // 32 KiB of shared memory
constexpr i64 middle_rows = i64{1} << 16;   // 16 MiB: a second-level cache
constexpr i64 most_far_rows = i64{1} << 22; // 1 GiB, more than any cache
constexpr i64 least_far_rows = i64{1} << 14;
constexpr int threads = 512;
constexpr int fetches = 256; // by each group of lanes
constexpr int near_fetches = 2048;
constexpr int products = 4096; // by each thread, 8 at a time
constexpr int rounds = 3;      // the fastest counts; the first one also loads the kernels

/// Numbers that are never equal to it keep the compiler from leaving out what makes them.
__device__ void use(double sum, double *sink) {
  if (sum == 1.2345678e300)
    *sink = sum;
}

__global__ void read_all(const double2 *from, i64 count, double *sink) {
  double sum = 0;
  const i64 step = i64{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < count; k += step)
    sum += from[k].x + from[k].y;
  use(sum, sink);
}

/// Rows in no order among a power of two: the high bits of a linear congruential generator (Knuth's constants).
__device__ double fetch(const double2 *rows, unsigned mask, int count, unsigned state, int lane) {
  double sum = 0;
#pragma unroll 8
  for (int k = 0; k < count; ++k) {
    state = state * 1664525u + 1013904223u;
    const double2 v = rows[i64{(state >> 9) & mask} * row_lanes + lane];
    sum += v.x + v.y;
  }
  return sum;
}

__global__ void fetch_rows(const double2 *rows, unsigned mask, double *sink) {
  const unsigned group = (blockIdx.x * blockDim.x + threadIdx.x) / row_lanes;
  use(fetch(rows, mask, fetches, group * 2654435761u, static_cast<int>(threadIdx.x) % row_lanes), sink);
}

__global__ void fetch_near_rows(const double2 *rows, double *sink) {
  __shared__ double2 staged[near_rows * row_lanes];
  for (int k = static_cast<int>(threadIdx.x); k < near_rows * row_lanes; k += threads)
    staged[k] = rows[k];
  __syncthreads();
  const unsigned group = (blockIdx.x * blockDim.x + threadIdx.x) / row_lanes;
  use(fetch(staged, near_rows - 1, near_fetches, group * 2654435761u, static_cast<int>(threadIdx.x) % row_lanes), sink);
}

__global__ void multiply_add(double by, double *sink) {
  double sums[8];
  for (int j = 0; j < 8; ++j)
    sums[j] = threadIdx.x + j;
  for (int k = 0; k < products; ++k)
#pragma unroll
    for (int j = 0; j < 8; ++j)
      sums[j] = sums[j] * by + 1;
  double sum = 0;
  for (int j = 0; j < 8; ++j)
    sum += sums[j];
  use(sum, sink);
}

/// Memory and events, which go with it.
class Measurement {
public:
  explicit Measurement(const Gpu &device) : device_(device) {
    for (far_rows_ = most_far_rows; far_rows_ >= least_far_rows && rows_ == nullptr; far_rows_ /= 2)
      if (far_rows_ * row_bytes <= device.free_bytes() / 4)
        rows_ = device.memory().try_allocate(far_rows_ * row_bytes, what, device.stream());
    far_rows_ *= 2;
  }
  Measurement(const Measurement &) = delete;
  Measurement &operator=(const Measurement &) = delete;
  ~Measurement() {
    if (rows_ != nullptr)
      cudaFreeAsync(rows_, device_.stream());
    for (cudaEvent_t event : {begin_, end_})
      if (event != nullptr)
        cudaEventDestroy(event);
  }

  Rates run() {
    if (rows_ == nullptr)
      return {};
    check(cudaEventCreate(&begin_), what);
    check(cudaEventCreate(&end_), what);
    check(cudaMemsetAsync(rows_, 0, static_cast<std::size_t>(far_rows_ * row_bytes), device_.stream()), what);
    auto *const rows = static_cast<const double2 *>(rows_);
    auto *const sink = static_cast<double *>(rows_);
    const auto blocks = static_cast<unsigned>(4 * device_.multiprocessors());
    const double groups = static_cast<double>(blocks) * threads / row_lanes;
    const auto fetched = [&](i64 among) {
      return groups * fetches * row_bytes / seconds([&] {
               fetch_rows<<<blocks, threads, 0, device_.stream()>>>(rows, static_cast<unsigned>(among - 1), sink);
             });
    };
    Rates rates;
    rates.read = static_cast<double>(far_rows_ * row_bytes) / seconds([&] {
                   read_all<<<blocks, threads, 0, device_.stream()>>>(rows, far_rows_ * row_lanes, sink);
                 });
    rates.near_rows = groups * near_fetches * row_bytes /
                      seconds([&] { fetch_near_rows<<<blocks, threads, 0, device_.stream()>>>(rows, sink); });
    rates.middle_rows = fetched(std::min(middle_rows, far_rows_));
    rates.far_rows = fetched(far_rows_);
    rates.operations = static_cast<double>(blocks) * threads * products * 8 * 2 /
                       seconds([&] { multiply_add<<<blocks, threads, 0, device_.stream()>>>(0.999, sink); });
    return rates;
  }

private:
  template <class Work> double seconds(Work &&work) {
    float least = 0;
    for (int round = 0; round < rounds; ++round) {
      check(cudaEventRecord(begin_, device_.stream()), what);
      work();
      check_launch(what);
      check(cudaEventRecord(end_, device_.stream()), what);
      check(cudaEventSynchronize(end_), what);
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, begin_, end_), what);
      least = round == 0 ? milliseconds : std::min(least, milliseconds);
    }
    return std::max(static_cast<double>(least), 1e-4) / 1e3;
  }

  const Gpu &device_;
  i64 far_rows_ = 0;
  void *rows_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

} // namespace

// They are measured once a process and GPU; not known where there is no memory to measure with.
Rates CudaBackend::rates() const {
  const CurrentDevice current = enter();
  static std::mutex mutex;
  static auto *const known = new std::map<int, Rates>;
  const std::lock_guard lock(mutex);
  const auto found = known->find(device_.ordinal());
  if (found != known->end())
    return found->second;
  const Rates rates = Measurement(device_).run();
  if (rates.read > 0)
    known->emplace(device_.ordinal(), rates);
  return rates;
}

} // namespace td::kernels::cuda
