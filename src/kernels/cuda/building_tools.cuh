// Gpu memory and CUB's passes, as building uses them.
#pragma once

#include <array>
#include <utility>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "kernels/cuda/building_entries.cuh"
#include "kernels/cuda/device_arrays.hpp"
#include "kernels/cuda/staging.hpp"

namespace td::kernels::cuda {

/// Gpu memory that steps of building use one after the other. Were it given back to the pool in between, what stays
/// would come to lie between what goes, and for each large array that no gap holds the driver maps memory anew (0.6 ms
/// for 600 MB on an H200).
class Spares {
public:
  struct Block {
    void *data = nullptr;
    i64 bytes = 0;
  };

  explicit Spares(Gpu &device) : device_(device) {}
  Spares(const Spares &) = delete;
  Spares &operator=(const Spares &) = delete;
  ~Spares() { trim(); }
  Gpu &device() const noexcept { return device_; }

  /// The smallest that has so many bytes and not more than twice as many, or a new one.
  Block take(i64 bytes) {
    if (bytes == 0)
      return {};
    Block *best = nullptr;
    for (Block &block : blocks_)
      if (block.bytes >= bytes && block.bytes <= 2 * bytes && (best == nullptr || block.bytes < best->bytes))
        best = &block;
    return best != nullptr ? std::exchange(*best, {}) : Block{allocate(bytes), bytes};
  }
  void put(Block block) noexcept {
    for (Block &place : blocks_)
      if (place.data == nullptr)
        return std::swap(place, block);
    device_.release(block.data);
  }
  /// Memory that stays, of the pool's.
  void *allocate(i64 bytes) {
    if (void *memory = device_.memory().try_allocate(bytes, while_building, device_.stream()))
      return memory;
    trim();
    return device_.allocate(bytes, while_building);
  }
  void trim() noexcept {
    for (Block &block : blocks_)
      device_.release(std::exchange(block, {}).data);
  }

private:
  Gpu &device_;
  std::array<Block, 16> blocks_;
};

/// One of them while it is used.
class Array {
public:
  Array() = default;
  Array(Spares &spares, i64 bytes) : spares_(&spares), block_(spares.take(bytes)) {}
  Array(Array &&other) noexcept { *this = std::move(other); }
  Array &operator=(Array &&other) noexcept {
    std::swap(spares_, other.spares_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~Array() {
    if (block_.data != nullptr)
      spares_->put(block_);
  }
  template <class T> T *as() const noexcept { return static_cast<T *>(block_.data); }
  /// Its first bytes as memory that stays.
  void *give(i64 bytes) {
    if (block_.bytes == bytes)
      return std::exchange(block_, {}).data;
    void *all = spares_->allocate(bytes);
    const cudaError_t result = cudaMemcpyAsync(all, block_.data, static_cast<std::size_t>(bytes),
                                               cudaMemcpyDeviceToDevice, spares_->device().stream());
    if (result != cudaSuccess)
      spares_->device().release(all);
    check(result, while_building);
    return all;
  }

private:
  Spares *spares_ = nullptr;
  Spares::Block block_;
};

inline Array uploaded(Spares &spares, Staging &staging, const void *host, i64 bytes) {
  if (host == nullptr || bytes == 0)
    return {};
  Array array(spares, bytes);
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
Copy make_sorted_copy(Spares &spares, Staging &staging, const PackedOnGpu &entries, const CopyPlan &plan);

} // namespace td::kernels::cuda
