// Non-owning views of a caller's or a layer's arrays. They are passed by value.
#pragma once

#include <span>
#include <vector>

#include "core/types.hpp"

namespace td {

/// A matrix of a run-time value type with contiguous rows (the R entries of one factor row are neighbours).
/// Element (i, r) is at i * ld + r; ld >= cols.
struct Matrix {
  void *data = nullptr;
  ValueType type = ValueType::f64;
  i64 rows = 0;
  i64 cols = 0;
  i64 ld = 0;

  template <class T> T *row(i64 i) const noexcept { return static_cast<T *>(data) + i * ld; }
  Matrix slice(i64 begin, i64 end) const noexcept {
    return {static_cast<char *>(data) + begin * ld * size_of(type), type, end - begin, cols, ld};
  }
  Matrix columns(i64 begin, i64 end) const noexcept {
    return {static_cast<char *>(data) + begin * size_of(type), type, rows, end - begin, ld};
  }
};

struct ConstMatrix {
  const void *data = nullptr;
  ValueType type = ValueType::f64;
  i64 rows = 0;
  i64 cols = 0;
  i64 ld = 0;

  ConstMatrix() = default;
  ConstMatrix(const void *d, ValueType t, i64 r, i64 c, i64 l) : data(d), type(t), rows(r), cols(c), ld(l) {}
  ConstMatrix(const Matrix &m) : data(m.data), type(m.type), rows(m.rows), cols(m.cols), ld(m.ld) {}

  template <class T> const T *row(i64 i) const noexcept { return static_cast<const T *>(data) + i * ld; }
  ConstMatrix slice(i64 begin, i64 end) const noexcept {
    return {static_cast<const char *>(data) + begin * ld * size_of(type), type, end - begin, cols, ld};
  }
  ConstMatrix columns(i64 begin, i64 end) const noexcept {
    return {static_cast<const char *>(data) + begin * size_of(type), type, rows, end - begin, ld};
  }
};

/// Half-open range of rows, nonzeros or elements.
struct Range {
  i64 begin = 0;
  i64 end = 0;
  i64 size() const noexcept { return end - begin; }
};

/// Ranges that ascend, none touching the next.
using Ranges = std::vector<Range>;

/// Part k of n of a range, sizes differing by at most one.
constexpr Range part_of(Range whole, i64 k, i64 n) noexcept {
  const i64 size = whole.end - whole.begin;
  const i64 each = size / n;
  const i64 more = size % n;
  const i64 begin = whole.begin + k * each + (k < more ? k : more);
  return {begin, begin + each + (k < more ? 1 : 0)};
}

/// Coordinates and values as a caller holds them: what td_tensor_create is given and what the readers produce.
struct EntriesView {
  std::span<const i64> dims;
  i64 nnz = 0;
  IndexType index_type = IndexType::i64;
  const void *const *indices = nullptr; // [order] arrays of nnz
  std::int32_t index_base = 0;
  ValueType value_type = ValueType::f64;
  const void *values = nullptr;

  int order() const noexcept { return static_cast<int>(dims.size()); }
};

/// A dense array as a caller holds it; strides in elements.
struct DenseArrayView {
  std::span<const i64> dims;
  std::span<const i64> strides; // empty: first index fastest, no gaps
  ValueType value_type = ValueType::f64;
  const void *values = nullptr;

  int order() const noexcept { return static_cast<int>(dims.size()); }
};

} // namespace td
