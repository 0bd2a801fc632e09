#include <cmath>

#include "core/strides.hpp"
#include "formats/merge.hpp"

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

} // namespace

Dense build_dense(const DenseArrayView &array, int threads) {
  check_dims(array.dims);
  const i64 elements = element_count(array.dims);
  if (!array.strides.empty() && array.strides.size() != array.dims.size())
    throw_error(Status::shape, "{} strides for order {}", array.strides.size(), array.dims.size());

  Dense x;
  x.dims.assign(array.dims.begin(), array.dims.end());
  x.values = ValueBuffer(array.value_type, elements, "a dense tensor");
  const auto strides = strides_of(array);
  dispatch(array.value_type, [&](auto zero) {
    using T = decltype(zero);
    T *values = x.values.as<T>();
    copy<T>(array, strides, values, elements / x.dims[0], threads);
    const i64 k = first_found(elements, threads,
                              [&](Range r) { return first_bad(r, [&](i64 i) { return !std::isfinite(values[i]); }); });
    if (k < 0)
      return;
    std::vector<i64> position;
    i64 rest = k;
    for (const i64 d : x.dims) {
      position.push_back(rest % d);
      rest /= d;
    }
    throw_error(Status::argument, "element {} (0-based): value {}, expected a finite number",
                coordinate_text(position, 0), values[k]);
  });
  return x;
}

} // namespace td::formats
