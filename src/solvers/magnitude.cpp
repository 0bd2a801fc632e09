#include "solvers/magnitude.hpp"

#include <algorithm>
#include <cmath>

#include "core/columns.hpp"

namespace td::solvers {

namespace {

void scale_columns(Matrix a, const ColumnScales &scales) {
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    for (i64 i = 0; i < a.rows; ++i)
      for (i64 r = 0; r < a.cols; ++r)
        a.row<T>(i)[r] =
            static_cast<T>(static_cast<double>(a.row<T>(i)[r]) * scales.factor[static_cast<std::size_t>(r)]);
  });
}

ValueBuffer scaled_values(const void *values, ValueType from, i64 count, int exponent, ValueType type) {
  ValueBuffer scaled(type, count, "a copy of the tensor in a safe range");
  dispatch(from, [&](auto from_zero) {
    using From = decltype(from_zero);
    const From *begin = static_cast<const From *>(values);
    dispatch(type, [&](auto zero) {
      using T = decltype(zero);
      std::transform(begin, begin + count, scaled.as<T>(),
                     [&](From x) { return std::ldexp(static_cast<T>(x), -exponent); });
    });
  });
  return scaled;
}

std::shared_ptr<const tensor::Tensor> scaled_copy(const tensor::Tensor &x, int exponent, ValueType type, int threads) {
  plan::TensorSettings settings = x.settings();
  settings.memory_limit = 0; // the tensor was let in, and its copy goes with the call
  if (type != x.type())
    settings.dense = {}; // it may name a kernel of f32
  if (!x.sparse()) {
    std::optional<formats::Dense> copied;
    const formats::Dense dense = formats::build_dense(x.elements(copied), threads);
    ValueBuffer values = scaled_values(dense.values.data(), x.type(), dense.values.size(), exponent, type);
    if (x.distribution() != nullptr) {
      formats::Dense elements{dense.dims, std::move(values), nullptr, {}};
      return tensor::Tensor::make_distributed({x.shared_distribution(), std::move(elements), x.stored_entries() == 0},
                                              settings, threads, x.source(), x.target());
    }
    return tensor::Tensor::make_dense({x.dims(), {}, type, values.data()}, settings, threads, x.source(), x.target());
  }
  std::optional<formats::Coo> holder;
  settings.format = x.format();
  if (x.distribution() != nullptr) {
    const kernels::CooView coo = x.stored_coordinates(holder, threads);
    tensor::LocalEntries entries({x.stored_dims().begin(), x.stored_dims().end()}, IndexType::i64, type, coo.nnz);
    for (int m = 0; m < x.order(); ++m)
      std::copy_n(coo.indices[m], coo.nnz, entries.indices<i64>(m).data());
    entries.values() = scaled_values(coo.values, x.type(), coo.nnz, exponent, type);
    return tensor::Tensor::make_distributed({x.shared_distribution(), std::move(entries)}, settings, threads,
                                            x.source(), x.target());
  }
  const kernels::CooView coo = x.coordinates(holder, threads);
  const ValueBuffer values = scaled_values(coo.values, x.type(), coo.nnz, exponent, type);
  std::vector<const void *> indices(coo.indices, coo.indices + x.order());
  return tensor::Tensor::make_sparse({x.dims(), coo.nnz, IndexType::i64, indices.data(), 0, type, values.data()},
                                     settings, threads, x.source(), x.target());
}

} // namespace

int unusual_exponent(const tensor::Tensor &x) {
  const double largest = std::max(std::abs(x.facts().min), std::abs(x.facts().max));
  const int exponent = largest == 0 ? 0 : std::ilogb(largest);
  return std::abs(exponent) > usual_exponent(x.type()) ? exponent : 0;
}

ValueType compared_type(const tensor::Tensor &x, const Ktensor &model) {
  if (x.type() != ValueType::f32 || model.type() != ValueType::f64)
    return x.type();
  for (int m = 0; m < model.order(); ++m) {
    const ConstMatrix a = model.factor(m);
    const ColumnScales scales = column_scales(a, 0);
    for (i64 i = 0; i < a.rows; ++i)
      for (i64 r = 0; r < a.cols; ++r) {
        const double scaled = a.row<double>(i)[r] * scales.factor[static_cast<std::size_t>(r)];
        if (static_cast<double>(static_cast<float>(scaled)) != scaled)
          return ValueType::f64;
      }
  }
  return ValueType::f32;
}

ScaledTensor::ScaledTensor(const tensor::Tensor &x, int exponent, ValueType type, int threads)
    : x_(x), exponent_(exponent),
      copy_(exponent == 0 && type == x.type() ? nullptr : scaled_copy(x, exponent, type, threads)) {}

void bring_into_range(Ktensor &model, std::span<const int> modes, ValueType type, const Meeting &others) {
  const int usual = usual_exponent(type) / std::max(1, model.order() - 1);
  bool unusual = false;
  for (const int m : modes)
    for (const i64 exponent : column_scales(model.factor(m), usual, others).exponent)
      unusual = unusual || exponent != 0;
  for (const int m : modes)
    if (unusual)
      scale_columns(model.factor(m), column_scales(model.factor(m), 0, others));
}

BalancedModel::BalancedModel(const Ktensor &model, ValueType type)
    : weights_(model.weights().begin(), model.weights().end()) {
  Ktensor balanced = model.copy();
  for (int m = 0; m < balanced.order(); ++m) {
    const Matrix a = balanced.factor(m);
    const ColumnScales scales = column_scales(a, 0);
    for (std::size_t r = 0; r < weights_.size(); ++r)
      weights_[r] = weights_[r] * Scaled(scales.factor[r] == 0 ? 0.0 : 1.0, scales.exponent[r]);
    scale_columns(a, scales);
  }
  factors_ = balanced.convert(type);
}

bool BalancedModel::is_zero() const noexcept {
  return std::all_of(weights_.begin(), weights_.end(), [](const Scaled &w) { return w.is_zero(); });
}

i64 BalancedModel::exponent() const noexcept {
  i64 largest = 0;
  bool any = false;
  for (const Scaled &w : weights_) {
    if (!w.is_zero()) {
      largest = any ? std::max(largest, w.exponent()) : w.exponent();
      any = true;
    }
  }
  return largest;
}

Ktensor BalancedModel::over_power(i64 exponent) const {
  Ktensor model = factors_.copy();
  std::transform(weights_.begin(), weights_.end(), model.weights().begin(),
                 [&](const Scaled &w) { return w.over_power(exponent); });
  return model;
}

} // namespace td::solvers
