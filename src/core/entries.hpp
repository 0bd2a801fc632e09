// Owning counterparts of EntriesView and DenseArrayView: what a reader makes and what a format gives back.
#pragma once

#include <vector>

#include "core/buffer.hpp"
#include "core/views.hpp"

namespace td {

struct Entries {
  std::vector<i64> dims;
  std::vector<Buffer<i64>> indices; // [order], counted from index_base
  std::int32_t index_base = 0;
  ValueBuffer values;
  std::vector<const void *> columns; // the same arrays, as EntriesView wants them

  /// The view is valid while this object lives and is not moved.
  EntriesView view() {
    columns.clear();
    for (const auto &column : indices)
      columns.push_back(column.data());
    return {dims, values.size(), IndexType::i64, columns.data(), index_base, values.type(), values.data()};
  }
};

struct DenseArray {
  std::vector<i64> dims;
  std::vector<i64> strides; // empty: first index fastest
  ValueBuffer values;

  DenseArrayView view() const { return {dims, strides, values.type(), values.data()}; }
};

} // namespace td
