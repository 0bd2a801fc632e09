// A caller's dense array on the GPU, which a tensor borrows: where it is, what its numbers add up to, and copies of it
// for the host.
#include <cmath>

#include "core/parallel.hpp"
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/strided.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int sum_threads = 32; // each adds long blocks up, one element after the other: threads of many small blocks

/// A thread a block: each of its elements waits for the one before it.
template <class T>
__global__ void sum_blocks(const __grid_constant__ Lying x, const T *values, i64 elements, i64 block, i64 blocks,
                           double scale, ElementSums *sums) {
  const i64 b = i64{blockIdx.x} * blockDim.x + threadIdx.x;
  if (b >= blocks)
    return;
  ElementSums found{{0, 0, INFINITY, -INFINITY, 0}, -1, 0};
  ValueSums &s = found.sums;
  const i64 end = min(elements, (b + 1) * block);
  for (i64 k = b * block; k < end;) {
    const i64 number = k / x.run;
    const i64 last = min(end, (number + 1) * x.run);
    const T *const begin = values + x.begin_of(number);
    for (; k < last; ++k) {
      const auto value = static_cast<double>(begin[(k - number * x.run) * x.step]);
      const double y = __dmul_rn(value, scale); // not fused with the sums: the host's bits
      s.sum = __dadd_rn(s.sum, y);
      s.squares = __dadd_rn(s.squares, __dmul_rn(y, y));
      s.min = fmin(s.min, value);
      s.max = fmax(s.max, value);
      s.zeros += value == 0 ? 1 : 0;
      if (!isfinite(value) && found.not_finite < 0) {
        found.not_finite = k;
        found.value = value;
      }
    }
  }
  sums[b] = found;
}

/// It stays the caller's.
class LentArray final : public DeviceArrays {
public:
  LentArray(Memory &memory, const DenseView &x)
      : memory_(memory), dims_(x.dims.begin(), x.dims.end()),
        strides_(x.strides.begin(), x.strides.end()), x_{dims_, x.type, x.values, strides_} {}
  LentArray(const LentArray &) = delete;
  LentArray &operator=(const LentArray &) = delete;

  std::vector<Array> arrays() const override { return {{x_.values, entries_of(x_) * size_of(x_.type)}}; }

  // On a stream of its own: the context that was lent it may be at work in another thread, or gone.
  void download(std::span<void *const> to_host) const override {
    const CurrentDevice current = memory_.enter();
    Gpu device(memory_);
    Staging staging(device, available_threads());
    const InMemoryOrder ordered(x_);
    const i64 size = size_of(x_.type);
    if (ordered.view().strides.empty())
      return staging.download(to_host[0], x_.values, entries_of(x_) * size);
    const Subtensors subtensors(ordered.view());
    const Scratch<char> gathered(device, subtensors.most() * size, "elements of a tensor with gaps");
    subtensors.each([&](const Subtensor &subtensor) {
      i64 elements = 1;
      for (const i64 d : subtensor.dims)
        elements *= d;
      gather(device, ordered.view(), subtensor, gathered.data());
      staging.download(static_cast<char *>(to_host[0]) + subtensor.first * size, gathered.data(), elements * size);
    });
  }

private:
  Memory &memory_;
  std::vector<i64> dims_, strides_;
  DenseView x_;
};

} // namespace

std::shared_ptr<const DeviceArrays> CudaBackend::lend(const DenseView &array, std::string_view name) {
  const CurrentDevice current = enter();
  const auto strides = strides_of(array);
  i64 last = 0; // element
  for (std::size_t m = 0; m < array.dims.size(); ++m)
    last += (array.dims[m] - 1) * strides[m];
  borrow(static_cast<const char *>(array.values) + last * size_of(array.type), name); // it may be shorter than it says
  borrow(array.values, name);
  return std::make_shared<LentArray>(device_.memory(), array);
}

void CudaBackend::sum_elements(const DenseView &x, double scale, i64 block, ElementSums *sums) {
  const CurrentDevice current = enter();
  const InMemoryOrder ordered(x);
  const auto strides = strides_of(ordered.view());
  const Lying lying(ordered.view().dims, std::span(strides).first(x.dims.size()));
  const i64 elements = entries_of(x);
  const i64 blocks = (elements + block - 1) / block;
  const Scratch<ElementSums> all(device_, blocks, "sums of a tensor's values");
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    sum_blocks<<<static_cast<unsigned>((blocks + sum_threads - 1) / sum_threads), sum_threads, 0, device_.stream()>>>(
        lying, static_cast<const T *>(x.values), elements, block, blocks, scale, all.data());
  });
  check_launch("sums of a tensor's values");
  staging_.download(sums, all.data(), blocks * static_cast<i64>(sizeof(ElementSums)));
}

bool CudaBackend::holds(const void *array) const {
  const CurrentDevice current = enter();
  cudaPointerAttributes found{};
  check(cudaPointerGetAttributes(&found, array), "asking where a caller's array is");
  return found.type == cudaMemoryTypeDevice; // of whichever GPU
}

} // namespace td::kernels::cuda
