// Bringing tensors and models into a range in which squares and products neither overflow nor vanish.
#pragma once

#include <memory>
#include <span>

#include "core/ktensor.hpp"
#include "core/scaled.hpp"
#include "tensor/tensor.hpp"

namespace td::solvers {

/// The exponents that are out of danger. f64: squares up to 2^300 and down to 2^-300, times those of a model alike, and
/// summed. f32: MTTKRP accumulates values times a few factor entries, which leaves as much room again on either side of
/// the range of 2^+-126.
constexpr int usual_exponent(ValueType type) { return type == ValueType::f64 ? 150 : 60; }

/// The exponent of x's largest magnitude if it is so far from 0 that squares and products are in danger, else 0.
int unusual_exponent(const tensor::Tensor &x);

/// The type in which a tensor and a model are compared: the tensor's, or f64 where that would round the model, of which
/// nothing might be left where components cancel.
ValueType compared_type(const tensor::Tensor &x, const Ktensor &model);

/// x * 2^-exponent. Powers of two round nothing but subnormal numbers.
class ScaledTensor {
public:
  /// Keeps a copy only if the exponent is not 0 or the type is not x's, which it may widen; x must live as long.
  ScaledTensor(const tensor::Tensor &x, int exponent, ValueType type, int threads);
  const tensor::Tensor &operator*() const noexcept { return copy_ ? *copy_ : x_; }
  const tensor::Tensor *operator->() const noexcept { return &**this; }
  int exponent() const noexcept { return exponent_; }

private:
  const tensor::Tensor &x_;
  int exponent_;
  std::shared_ptr<const tensor::Tensor> copy_;
};

/// Brings the largest magnitudes of these modes' columns into [1, 2), by powers of two that are forgotten, if products
/// of columns, one of each mode, could leave the range of the type; else nothing changes. `others` hold the other
/// blocks.
void bring_into_range(Ktensor &model, std::span<const int> modes, ValueType type, const Meeting &others);

/// A model in which every column's largest magnitude is in [1, 2), by powers of two that go into the weights.
class BalancedModel {
public:
  explicit BalancedModel(const Ktensor &model, ValueType type);
  bool is_zero() const noexcept;
  /// The exponent of the largest weight; 0 if the model is zero.
  i64 exponent() const noexcept;
  /// The model * 2^-exponent.
  Ktensor over_power(i64 exponent) const;

private:
  Ktensor factors_;
  std::vector<Scaled> weights_;
};

} // namespace td::solvers
