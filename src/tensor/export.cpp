#include "tensor/export.hpp"

#include <cmath>
#include <limits>

#include "core/parallel.hpp"
#include "core/strides.hpp"

namespace td::tensor {

namespace {

constexpr i64 grain = i64{1} << 16; // entries that a thread copies at least

template <class To, class From> To convert(From value) {
  const To converted = static_cast<To>(value);
  if (!std::isfinite(converted))
    throw_error(Status::numerical, "value {} does not fit {}", value, name_of(value_type_of<To>));
  return converted;
}

// Calls body(from, to) with typed pointers.
template <class Body> void with_types(ValueType from_type, const void *from, ValueType to_type, void *to, Body &&body) {
  dispatch(from_type, [&](auto from_zero) {
    dispatch(to_type, [&](auto to_zero) {
      body(static_cast<const decltype(from_zero) *>(from), static_cast<decltype(to_zero) *>(to));
    });
  });
}

} // namespace

void export_entries(const Tensor &x, IndexType index_type, void *const *indices, std::int32_t index_base,
                    ValueType value_type, void *values) {
  if (!x.sparse())
    throw_error(Status::unsupported, "entries of a dense tensor: expected a sparse one; td_tensor_get_dense copies all "
                                     "elements");
  const i64 largest =
      index_type == IndexType::i32 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<i64>::max();
  for (std::size_t m = 0; m < x.dims().size(); ++m)
    if (x.dims()[m] - 1 > largest - index_base)
      throw_error(Status::shape, "dims[{}] = {}: its indices do not fit TD_I32; expected TD_I64", m, x.dims()[m]);

  const int threads = available_threads();
  std::optional<formats::Coo> holder;
  const kernels::CooView coo = x.coordinates(holder, threads);
  if (indices != nullptr)
    for (int m = 0; m < x.order(); ++m)
      if (indices[m] != nullptr)
        dispatch(index_type, [&](auto zero) {
          using Index = decltype(zero);
          auto *out = static_cast<Index *>(indices[m]);
          parallel_ranges(threads, coo.nnz, grain, [&](Range range) {
            for (i64 k = range.begin; k < range.end; ++k)
              out[k] = static_cast<Index>(coo.indices[m][k] + index_base);
          });
        });
  if (values != nullptr)
    with_types(x.type(), coo.values, value_type, values, [&]<class From, class To>(const From *from, To *to) {
      parallel_ranges(threads, coo.nnz, grain, [&](Range range) {
        for (i64 k = range.begin; k < range.end; ++k)
          to[k] = convert<To>(from[k]);
      });
    });
}

void export_dense(const Tensor &x, std::span<const i64> given_strides, ValueType value_type, void *values) {
  const std::vector<i64> strides = output_strides(x.dims(), given_strides, value_type);
  if (!x.sparse()) {
    std::optional<formats::Dense> holder;
    const DenseArrayView all = x.elements(holder);
    with_types(x.type(), all.values, value_type, values, [&]<class From, class To>(const From *from, To *to) {
      for_each_element(x.dims(), strides, [&](i64 k, i64 offset, const auto &index) {
        i64 place = all.strides.empty() ? k : 0;
        for (std::size_t m = 0; m < all.strides.size(); ++m)
          place += index[m] * all.strides[m];
        to[offset] = convert<To>(from[place]);
      });
    });
    return;
  }
  std::optional<formats::Coo> holder;
  const kernels::CooView coo = x.coordinates(holder, available_threads());
  with_types(x.type(), coo.values, value_type, values, [&]<class From, class To>(const From *from, To *to) {
    for_each_element(x.dims(), strides, [&](i64, i64 offset, const auto &) { to[offset] = To{0}; });
    for (i64 k = 0; k < coo.nnz; ++k) {
      i64 offset = 0;
      for (std::size_t m = 0; m < strides.size(); ++m)
        offset += coo.indices[m][k] * strides[m];
      to[offset] = convert<To>(from[k]);
    }
  });
}

} // namespace td::tensor
