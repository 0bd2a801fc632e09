#include <cmath>

#include "core/strides.hpp"
#include "formats/duplicates.hpp"
#include "kernels/memory_order.hpp"

namespace td::formats {

namespace {

/// A caller's array as rows along mode 0: `offset` of the row's first element and where the row is.
class RowWalk {
public:
  RowWalk(const DenseArrayView &array, std::span<const i64> strides, i64 row)
      : array_(array), strides_(strides), index_(array.dims.size(), 0) {
    for (std::size_t m = 1; m < index_.size(); ++m) {
      index_[m] = row % array.dims[m];
      row /= array.dims[m];
      offset_ += index_[m] * strides[m];
    }
  }

  i64 offset() const noexcept { return offset_; }

  void next() noexcept {
    for (std::size_t m = 1; m < index_.size(); ++m) {
      if (++index_[m] < array_.dims[m]) {
        offset_ += strides_[m];
        return;
      }
      offset_ -= (array_.dims[m] - 1) * strides_[m]; // the stride of a dim of 1 may be anything
      index_[m] = 0;
    }
  }

private:
  const DenseArrayView &array_;
  std::span<const i64> strides_;
  std::vector<i64> index_; // [0] is not used: a row is all of mode 0
  i64 offset_ = 0;
};

template <class T> void copy(const DenseArrayView &array, std::span<const i64> strides, T *to, i64 rows, int threads) {
  const auto *from = static_cast<const T *>(array.values);
  const i64 length = array.dims[0];
  const i64 stride = strides[0];
  parallel_ranges(threads, rows, grain / length + 1, [&](Range r) {
    RowWalk walk(array, strides, r.begin);
    for (i64 row = r.begin; row < r.end; ++row, walk.next()) {
      const T *in = from + walk.offset();
      T *out = to + row * length;
      if (stride == 1)
        std::copy(in, in + length, out);
      else
        for (i64 i = 0; i < length; ++i)
          out[i] = in[i * stride];
    }
  });
}

std::vector<i64> strides_of(const DenseArrayView &array) {
  if (!array.strides.empty())
    return {array.strides.begin(), array.strides.end()};
  std::vector<i64> strides;
  i64 next = 1;
  for (const i64 d : array.dims) {
    strides.push_back(next);
    next *= d;
  }
  return strides;
}

void require_strides_for_each_dim(const DenseArrayView &array) {
  if (!array.strides.empty() && array.strides.size() != array.dims.size())
    throw_error(Status::shape, "{} strides for order {}", array.strides.size(), array.dims.size());
}

} // namespace

kernels::DenseView Dense::view() const {
  return {dims, values.type(), lent != nullptr ? lent : values.data(), strides};
}

i64 Dense::bytes() const { return 8 * (std::ssize(dims) + std::ssize(strides)) + values.bytes(); }

void copy_elements(const DenseArrayView &array, void *to, int threads) {
  const i64 rows = element_count(array.dims) / array.dims[0];
  dispatch(array.value_type,
           [&](auto zero) { copy(array, strides_of(array), static_cast<decltype(zero) *>(to), rows, threads); });
}

Dense build_dense(const DenseArrayView &array, int threads) {
  check_dims(array.dims);
  const i64 elements = element_count(array.dims);
  require_strides_for_each_dim(array);

  Dense x;
  x.dims.assign(array.dims.begin(), array.dims.end());
  x.values = ValueBuffer(array.value_type, elements, "a dense tensor");
  copy_elements(array, x.values.data(), threads);
  dispatch(array.value_type, [&](auto zero) {
    const auto *values = x.values.as<decltype(zero)>();
    const i64 k = first_found(elements, threads,
                              [&](Range r) { return first_bad(r, [&](i64 i) { return !std::isfinite(values[i]); }); });
    if (k < 0)
      return;
    refuse_element(x.view(), k, static_cast<double>(values[k]));
  });
  return x;
}

void refuse_element(const kernels::DenseView &x, i64 k, double value) {
  const auto modes = kernels::modes_in_memory(x);
  std::vector<i64> position(x.dims.size());
  for (std::size_t place = 0; place < x.dims.size(); ++place) {
    const auto m = static_cast<std::size_t>(modes[place]);
    position[m] = k % x.dims[m];
    k /= x.dims[m];
  }
  throw_error(Status::argument, "element {} (0-based): value {}, expected a finite number",
              coordinate_text(position, 0), value);
}

Dense lend_dense(const DenseArrayView &array) {
  check_dims(array.dims);
  element_count(array.dims);
  require_strides_for_each_dim(array);
  const i64 size = size_of(array.value_type);
  if (reinterpret_cast<std::uintptr_t>(array.values) % static_cast<std::uintptr_t>(size) != 0)
    throw_error(Status::argument,
                "values: the address {} of an array that is borrowed is no multiple of {}, the bytes "
                "of a number in {}",
                array.values, size, name_of(array.value_type));
  Dense x;
  x.dims.assign(array.dims.begin(), array.dims.end());
  x.values = ValueBuffer(array.value_type, 0, "nothing");
  x.lent = array.values;
  for (std::size_t m = 0; m < array.strides.size(); ++m)
    if (array.strides[m] < 1 && array.dims[m] > 1)
      throw_error(Status::shape, "strides[{}] = {}: expected at least 1 in an array that is borrowed", m,
                  array.strides[m]);
  reach_of(array.dims, array.strides, array.value_type); // within 2^63 - 1 bytes
  const kernels::DenseView view{x.dims, array.value_type, nullptr, array.strides};
  const auto modes = kernels::modes_in_memory(view);
  i64 reach = 1; // elements from the first to the last one of the modes so far
  for (std::size_t k = 0; k < array.strides.size(); ++k) {
    const auto m = static_cast<std::size_t>(modes[k]);
    if (x.dims[m] == 1)
      continue;
    if (array.strides[m] < reach)
      throw_error(Status::shape,
                  "strides[{}] = {}: the elements of the modes with smaller strides reach over {} places; expected at "
                  "least as many in an array that is borrowed, so that no two elements share one",
                  m, array.strides[m], reach);
    reach += (x.dims[m] - 1) * array.strides[m];
  }
  i64 next = 1;
  bool gaps = false; // or another order
  for (std::size_t m = 0; m < array.strides.size(); ++m) {
    x.strides.push_back(x.dims[m] == 1 ? next : array.strides[m]);
    gaps = gaps || x.strides.back() != next;
    next *= x.dims[m];
  }
  if (!gaps)
    x.strides.clear();
  return x;
}

} // namespace td::formats
