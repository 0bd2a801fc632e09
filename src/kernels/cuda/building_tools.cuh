// Gpu memory and CUB's passes, as building uses them.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "kernels/cuda/building_entries.cuh"
#include "kernels/cuda/device_arrays.hpp"
#include "kernels/cuda/staging.hpp"

namespace td::kernels::cuda {

/// Gpu memory that steps of building use one after the other, in one allocation. From the pool each array would come
/// to lie in a gap of its own, and the driver maps memory anew for each that no gap holds (1 ms a GB on an H200). The
/// arrays have few sizes, so it is cut in units of the smallest, and what one leaves holds another.
class Workspace {
public:
  Workspace(Gpu &device, i64 units, i64 unit)
      : device_(device), unit_(unit), free_{{0, units}},
        all_(static_cast<char *>(device.allocate(units * unit, while_building))), end_(all_ + units * unit) {
    free_.reserve(static_cast<std::size_t>(units));
  }
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  ~Workspace() { device_.release(all_); }
  Gpu &device() const noexcept { return device_; }

  /// What is far smaller than a unit, or has no room here, is taken from the pool.
  void *take(i64 bytes) {
    if (bytes < unit_ / 4)
      return allocate(bytes);
    const i64 units = (bytes + unit_ - 1) / unit_;
    const auto range = std::find_if(free_.begin(), free_.end(), [&](Range r) { return r.size() >= units; });
    if (range == free_.end())
      return allocate(bytes);
    void *const data = all_ + range->begin * unit_;
    range->begin += units;
    if (range->size() == 0)
      free_.erase(range);
    return data;
  }
  void put(void *data, i64 bytes) noexcept {
    auto *const begin = static_cast<char *>(data);
    if (std::less<>()(begin, all_) || !std::less<>()(begin, end_))
      return device_.release(data);
    const i64 first = (begin - all_) / unit_;
    Range back{first, first + (bytes + unit_ - 1) / unit_};
    auto next = std::find_if(free_.begin(), free_.end(), [&](Range r) { return r.begin >= back.end; });
    if (next != free_.end() && next->begin == back.end) {
      back.end = next->end;
      next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->end == back.begin)
      std::prev(next)->end = back.end;
    else
      free_.insert(next, back);
  }
  /// Memory that stays, of the pool's.
  void *allocate(i64 bytes) { return device_.allocate(bytes, while_building); }

private:
  Gpu &device_;
  i64 unit_;
  std::vector<Range> free_; // units, ascending
  char *all_;
  char *end_;
};

/// A part of it while it is used.
class Array {
public:
  Array() = default;
  Array(Workspace &workspace, i64 bytes)
      : workspace_(&workspace), data_(bytes == 0 ? nullptr : workspace.take(bytes)), bytes_(bytes) {}
  Array(Array &&other) noexcept { *this = std::move(other); }
  Array &operator=(Array &&other) noexcept {
    std::swap(workspace_, other.workspace_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Array() {
    if (data_ != nullptr)
      workspace_->put(data_, bytes_);
  }
  template <class T> T *as() const noexcept { return static_cast<T *>(data_); }
  /// A copy of its first bytes in memory that stays.
  void *stay(i64 bytes) const {
    void *all = workspace_->allocate(bytes);
    const cudaError_t result = cudaMemcpyAsync(all, data_, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                                               workspace_->device().stream());
    if (result != cudaSuccess)
      workspace_->device().release(all);
    check(result, while_building);
    return all;
  }

private:
  Workspace *workspace_ = nullptr;
  void *data_ = nullptr;
  i64 bytes_ = 0;
};

inline Array uploaded(Workspace &workspace, Staging &staging, const void *host, i64 bytes) {
  if (host == nullptr || bytes == 0)
    return {};
  Array array(workspace, bytes);
  staging.upload(array.as<void>(), host, bytes);
  return array;
}

/// What CUB does in two calls: asked for the memory that it needs, then with it. run(memory, bytes).
template <class F> void with_memory(Gpu &device, F &&run) {
  std::size_t bytes = 0;
  check(run(nullptr, bytes), while_building);
  const Scratch<char> memory(device, static_cast<i64>(bytes), while_building);
  check(run(memory.data(), bytes), while_building);
}

/// Writes all k < size with starts(k); gives how many.
template <class F> i64 select(Gpu &device, i64 size, F starts, std::uint32_t *entries) {
  const Scratch<i64> count(device, 1, while_building);
  with_memory(device, [&](void *memory, std::size_t &bytes) {
    return cub::DeviceSelect::If(memory, bytes, thrust::counting_iterator<std::uint32_t>(0), entries, count.data(),
                                 size, starts, device.stream());
  });
  i64 some = 0;
  device.download(&some, count.data(), sizeof some);
  return some;
}

/// Sorts words of an entry's number and, above it, so many bits, by these. Those that agree keep their order.
template <class Word> void sort_words(Gpu &device, cub::DoubleBuffer<Word> &words, i64 count, int bits) {
  if (count > 0)
    with_memory(device, [&](void *memory, std::size_t &bytes) {
      return cub::DeviceRadixSort::SortKeys(memory, bytes, words, count, number_bits, number_bits + bits,
                                            device.stream());
    });
}

/// Packed entries in the GPU's memory, in linearized order.
struct PackedOnGpu {
  const void *keys;
  int key_bytes; // 8 or 16
  const void *values;
  ValueType type;
  i64 size;
};

/// Makes the copy and the lists that describe it.
Copy make_sorted_copy(Workspace &workspace, Staging &staging, const PackedOnGpu &entries, const CopyPlan &plan);

} // namespace td::kernels::cuda
