#include "kernels/cuda/by_row.hpp"

#include <bit>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace td::kernels::cuda {

namespace {

constexpr const char *finding = "finding rows in a copy's lists";
constexpr unsigned search_threads = 128;

__global__ void search(const i64 *row_index, const i64 *row_begin, i64 count, const RowQuery *wanted, RowPlace *found) {
  const i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x;
  if (k < count)
    found[k] = find_row(row_index, row_begin, wanted[k]);
}

} // namespace

void find_rows(Gpu &device, const i64 *row_index, const i64 *row_begin, std::span<const RowQuery> wanted,
               std::span<RowPlace> found) {
  if (wanted.empty())
    return;
  const Scratch<RowQuery> queries(device, std::ssize(wanted), finding);
  const Scratch<RowPlace> places(device, std::ssize(wanted), finding);
  device.upload(queries.data(), wanted.data(), static_cast<i64>(wanted.size_bytes()));
  const auto blocks = static_cast<unsigned>((wanted.size() + search_threads - 1) / search_threads);
  search<<<blocks, search_threads, 0, device.stream()>>>(row_index, row_begin, std::ssize(wanted), queries.data(),
                                                         places.data());
  check_launch(finding);
  device.download(found.data(), places.data(), static_cast<i64>(found.size_bytes()));
}

ByRow::ByRow(Gpu &device, i64 count)
    : device_(device), count_(count), row_(device, count, "the rows of entries"),
      row_after_(device, count, "the rows of entries"), number_(device, count, "the order of entries"),
      number_after_(device, count, "the order of entries") {}

void ByRow::sort(u64 largest) {
  const int bits = std::max(static_cast<int>(std::bit_width(largest)), 1);
  std::size_t bytes = 0;
  const auto run = [&](void *memory) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, row_.data(), row_after_.data(), number_.data(),
                                           number_after_.data(), count_, 0, bits, device_.stream());
  };
  if (count_ > 0) {
    check(run(nullptr), "sorting entries by row");
    const Scratch<char> memory(device_, static_cast<i64>(bytes), "sorting entries by row");
    check(run(memory.data()), "sorting entries by row");
  }
  sorted_ = true;
}

void set_zero(Gpu &device, Matrix a) {
  if (a.rows == 0 || a.cols == 0)
    return;
  const auto element = static_cast<std::size_t>(size_of(a.type));
  check(cudaMemset2DAsync(a.data, static_cast<std::size_t>(a.ld) * element, 0,
                          static_cast<std::size_t>(a.cols) * element, static_cast<std::size_t>(a.rows),
                          device.stream()),
        "setting rows to zero");
}

void running_sum(Gpu &device, const i64 *from, i64 count, i64 *to) {
  if (count == 0)
    return;
  std::size_t bytes = 0;
  check(cub::DeviceScan::InclusiveSum(nullptr, bytes, from, to, count, device.stream()), "adding up");
  const Scratch<char> memory(device, static_cast<i64>(bytes), "adding up");
  check(cub::DeviceScan::InclusiveSum(memory.data(), bytes, from, to, count, device.stream()), "adding up");
}

} // namespace td::kernels::cuda
