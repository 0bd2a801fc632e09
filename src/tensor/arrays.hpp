// The arrays behind a view of a stored form.
#pragma once

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
    const auto list = [&]<class T>(const T *&data, i64 count) { f(data, count, i64{sizeof(T)}, false); };
    if (auto *blco = std::get_if<kernels::BlcoView>(&view_)) {
      f(blco->keys, blco->nnz, 8, true);
      f(blco->values, blco->nnz, size_of(blco->type), true);
      list(blco->block_begin, blco->blocks + 1);
      list(blco->block_base, blco->blocks * std::ssize(blco->dims));
    } else if (auto *sorted = std::get_if<kernels::SortedView>(&view_)) {
      f(sorted->keys, sorted->nnz, sorted->key_bytes, true);
      f(sorted->values, sorted->nnz, size_of(sorted->type), true);
      list(sorted->row_index, sorted->rows);
      list(sorted->row_begin, sorted->rows + 1);
      list(sorted->tile_begin, sorted->tiles + 1);
      list(sorted->tile_base, sorted->tiles * std::ssize(sorted->dims));
      list(sorted->tile_light, sorted->tiles > 1 ? sorted->tiles : 0);
    } else if (auto *dense = std::get_if<kernels::DenseView>(&view_)) {
      f(dense->values, kernels::entries_of(view_), size_of(dense->type), true);
    } else {
      auto &coo = std::get<kernels::CooView>(view_);
      f(coo.values, coo.nnz, size_of(coo.type), true);
      for (const i64 *&column : columns_)
        f(column, coo.nnz, 8, true);
    }
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
