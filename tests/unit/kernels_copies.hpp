// Copies of tensors and matrices in the memory of a backend, for tests of its kernels.
#pragma once

#include "unit/kernels_support.hpp"

namespace td::test {

/// Copies in a backend's memory, for as long as this lives.
class Copies {
public:
  explicit Copies(kernels::Backend &backend) : backend_(backend) {}

  template <class T> const T *of(const T *host, i64 count) {
    const i64 bytes = count * static_cast<i64>(sizeof(T));
    return static_cast<const T *>(of_bytes(host, bytes));
  }
  const void *of_bytes(const void *host, i64 bytes) {
    if (bytes == 0 || host == nullptr)
      return nullptr;
    buffers_.emplace_back(backend_, bytes, "a test's copy");
    backend_.upload(buffers_.back().data(), host, bytes);
    return buffers_.back().data();
  }

  kernels::TensorView of(const kernels::TensorView &x) {
    return std::visit([this](const auto &v) -> kernels::TensorView { return copy(v); }, x);
  }

private:
  kernels::CooView copy(kernels::CooView v) {
    columns_.clear();
    for (std::size_t m = 0; m < v.dims.size(); ++m)
      columns_.push_back(of(v.indices[m], v.nnz));
    v.indices = columns_.data();
    v.values = of_bytes(v.values, v.nnz * size_of(v.type));
    return v;
  }
  kernels::BlcoView copy(kernels::BlcoView v) {
    v.keys = of(v.keys, v.nnz);
    v.values = of_bytes(v.values, v.nnz * size_of(v.type));
    v.block_begin = of(v.block_begin, v.blocks + 1);
    v.block_base = of(v.block_base, v.blocks * static_cast<i64>(v.dims.size()));
    return v;
  }
  kernels::SortedView copy(kernels::SortedView v) {
    v.keys = of_bytes(v.keys, v.nnz * v.key_bytes);
    v.values = of_bytes(v.values, v.nnz * size_of(v.type));
    v.row_index = of(v.row_index, v.rows);
    v.row_begin = of(v.row_begin, v.rows + 1);
    v.tile_begin = of(v.tile_begin, v.tiles + 1);
    v.tile_base = of(v.tile_base, v.tiles * static_cast<i64>(v.dims.size()));
    v.tile_light = of(v.tile_light, v.tiles > 1 ? v.tiles : 0);
    return v;
  }
  kernels::DenseView copy(kernels::DenseView v) {
    i64 size = 1;
    for (const i64 d : v.dims)
      size *= d;
    v.values = of_bytes(v.values, size * size_of(v.type));
    return v;
  }

  kernels::Backend &backend_;
  std::vector<kernels::DeviceBuffer> buffers_;
  std::vector<const i64 *> columns_;
};

} // namespace td::test
