// The arrays behind a view of a stored form.
#pragma once

#include <type_traits>
#include <vector>

#include "kernels/views.hpp"

namespace td::tensor {

struct FormArray {
  const void *data;
  i64 count;
  i64 each;                       // bytes
  bool entries;                   // has an element for each entry; else it lists rows, tiles or blocks
  std::span<const i64> dims = {}; // of a lent array of entries that does not lie first index fastest and without gaps
  std::span<const i64> strides = {};
  i64 bytes() const noexcept { return count * each; }
};

/// A view whose arrays can be replaced one by one.
class FormView {
public:
  explicit FormView(const kernels::TensorView &x);

  /// Calls f(array) for each array, always in one order, and takes what it gives in the array's place.
  template <class F> void replace(F &&f) {
    const auto *dense = std::get_if<kernels::DenseView>(&view_);
    const std::span<const i64> none;
    const std::span<const i64> strides = dense == nullptr ? none : dense->strides;
    const std::span<const i64> dims = strides.empty() ? none : dense->dims;
    each([&](auto *&data, i64 count, i64 size, bool entries) {
      data =
          static_cast<std::remove_reference_t<decltype(data)>>(f(FormArray{data, count, size, entries, dims, strides}));
    });
  }
  std::vector<FormArray> arrays();

  /// Valid as long as this.
  kernels::TensorView view() const;
  void set_rows_there(Range rows);
  /// The elements of a dense tensor are a copy: in the order of memory, without gaps.
  void set_copied();

private:
  template <class F> void each(F &&f) {
    std::visit([&](auto &x) { arrays_of(x, f); }, view_);
  }
  template <class F> void arrays_of(kernels::CooView &x, F &f) {
    f(x.values, x.nnz, size_of(x.type), true);
    for (const i64 *&column : columns_)
      f(column, x.nnz, 8, true);
  }
  template <class F> void arrays_of(kernels::BlcoView &x, F &f) {
    f(x.keys, x.nnz, 8, true);
    f(x.values, x.nnz, size_of(x.type), true);
    f(x.block_begin, x.blocks + 1, 8, false);
    f(x.block_base, x.blocks * std::ssize(x.dims), 8, false);
  }
  template <class F> void arrays_of(kernels::SortedView &x, F &f) {
    f(x.keys, x.nnz, x.key_bytes, true);
    f(x.values, x.nnz, size_of(x.type), true);
    f(x.row_index, x.rows, 8, false);
    f(x.row_begin, x.rows + 1, 8, false);
    f(x.tile_begin, x.tiles + 1, 8, false);
    f(x.tile_base, x.tiles * std::ssize(x.dims), 8, false);
    f(x.tile_light, x.tiles > 1 ? x.tiles : 0, 8, false);
  }
  template <class F> void arrays_of(kernels::DenseView &x, F &f) {
    f(x.values, kernels::entries_of(x), size_of(x.type), true);
  }

  kernels::TensorView view_;
  std::vector<const i64 *> columns_; // of coordinates
  std::vector<i64> strides_;         // of a copy of a dense tensor
  bool copied_ = false;
};

/// Bytes of a form's arrays.
struct FormBytes {
  i64 entries = 0; // keys, indices and values
  i64 lists = 0;   // of rows, tiles and blocks
  i64 each = 0;    // of an entry
};
FormBytes bytes_of(const kernels::TensorView &x);

} // namespace td::tensor
