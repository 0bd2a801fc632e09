#include "entry_arrays.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <new>
#include <numeric>

#include <fmt/format.h>

#include "draw.hpp"

namespace cli {

namespace {

/// The element that is to be at k was at order[k].
template <class T> void permute(const std::vector<std::size_t> &order, std::vector<T> &a) {
  std::vector<T> moved(a.size());
  in_parallel(static_cast<std::int64_t>(a.size()), [&](std::int64_t begin, std::int64_t end) {
    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k)
      moved[k] = a[order[k]];
  });
  a = std::move(moved);
}

} // namespace

AnyCoordinates coordinates_for(const std::vector<std::int64_t> &dims, std::int64_t n) {
  if (*std::max_element(dims.begin(), dims.end()) <= std::numeric_limits<std::int32_t>::max())
    return Coordinates<std::int32_t>(dims.size(), n);
  return Coordinates<std::int64_t>(dims.size(), n);
}

template <class Value> std::vector<Value> dense_array(const std::vector<std::int64_t> &dims) {
  const double n = std::accumulate(dims.begin(), dims.end(), 1.0, std::multiplies<>());
  try {
    if (n < 0x1p53) // far above any memory
      return std::vector<Value>(static_cast<std::size_t>(n));
  } catch (const std::bad_alloc &) { // the sentence below says how much it was
  }
  throw Failure(exit_memory, fmt::format("a dense tensor of {:.6g} elements needs {:.6g} bytes, which are not there", n,
                                         n * sizeof(Value)));
}

template std::vector<float> dense_array(const std::vector<std::int64_t> &dims);
template std::vector<double> dense_array(const std::vector<std::int64_t> &dims);

EntryArrays::EntryArrays(const td_tensor *x, td_type type)
    : dims_(dims_of(x)), sparse_(get<std::int64_t>(td_tensor_get_i64, x, "sparse") != 0), type_(type),
      nnz_(get<std::int64_t>(td_tensor_nnz, x)), at_(coordinates_for(dims_, sparse_ ? nnz_ : 0)) {
  if (type_ == TD_F32)
    values_.emplace<std::vector<float>>(static_cast<std::size_t>(nnz_));
  else
    values_.emplace<std::vector<double>>(static_cast<std::size_t>(nnz_));
  std::visit(
      [&](auto &at, auto &values) {
        if (sparse_)
          check(td_tensor_get_entries(x, at.type, at.write().data(), 0, type_, values.data()));
        else
          check(td_tensor_get_dense(x, nullptr, type_, values.data()));
      },
      at_, values_);
}

Tensor EntryArrays::build(td_context *context, const td_options *options) const {
  const auto order = static_cast<std::int32_t>(dims_.size());
  return std::visit(
      [&](const auto &at, const auto &values) {
        if (!sparse_)
          return make<Tensor>(td_tensor_create_dense, context, order, dims_.data(), nullptr, type_, values.data(),
                              TD_HOST, options);
        return make<Tensor>(td_tensor_create, context, order, dims_.data(), nnz_, at.type, at.read().data(), 0, type_,
                            values.data(), TD_HOST, options);
      },
      at_, values_);
}

void EntryArrays::shuffle() {
  std::vector<std::size_t> order(static_cast<std::size_t>(nnz_));
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t k = order.size(); k > 1; --k) // Fisher and Yates
    std::swap(order[k - 1], order[draw_bits(0, {k}) % k]);
  std::visit(
      [&](auto &at, auto &values) {
        for (auto &mode : at.modes)
          permute(order, mode);
        permute(order, values);
      },
      at_, values_);
}

} // namespace cli
