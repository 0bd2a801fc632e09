#include "solvers/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "core/scaled.hpp"
#include "solvers/magnitude.hpp"
#include "solvers/replica.hpp"
#include "solvers/residual.hpp"

namespace td::solvers {

namespace {

/// A model's copy on one backend.
class Placed {
public:
  Placed(kernels::Backend &backend, const Ktensor &model, const formats::Numbering &numbering)
      : backend_(backend), factors_(backend, model, numbering),
        weights_(backend, model.rank(), "a copy of the weights") {
    weights_.upload(model.weights());
  }
  Comparison compare(const tensor::Placement &x) const {
    return compare_entries(backend_, *make_self_communicator(), x, weights_.data(), factors_.views());
  }

private:
  kernels::Backend &backend_;
  Replica factors_;
  DeviceNumbers weights_;
};

double column_length(ConstMatrix a, i64 column) {
  return dispatch(a.type, [&](auto zero) {
    double sum = 0;
    for (i64 i = 0; i < a.rows; ++i) {
      const auto x = static_cast<double>(a.row<decltype(zero)>(i)[column]);
      sum += x * x;
    }
    return std::sqrt(sum);
  });
}

/// The norm of a model whose columns are near 1. The magnitude is a bound, at most rank times too large, that needs no
/// Gram matrix.
ModelNorm model_norm_of(const Ktensor &model) {
  ModelNorm norm;
  const double length = model.norm();
  norm.squared = length * length;
  for (i64 r = 0; r < model.rank(); ++r) {
    double product = std::abs(model.weights()[static_cast<std::size_t>(r)]);
    for (int m = 0; m < model.order(); ++m)
      product *= column_length(model.factor(m), r);
    norm.lengths += product;
  }
  norm.magnitude = norm.lengths * norm.lengths;
  return norm;
}

void check_same_dims(const tensor::Tensor &x, const Ktensor &model) {
  if (!std::equal(x.dims().begin(), x.dims().end(), model.dims().begin(), model.dims().end()))
    throw_error(Status::shape, "a model of order {} for a tensor of order {}: expected the same dims", model.order(),
                x.order());
}

// A model that is 2^150 times the tensor decides what the common scale is; its squares are then near 1.
constexpr i64 much_larger = 150;

/// A tensor and a model in the type that they are compared in, both divided by the same power of two if their
/// magnitudes ask for it.
struct Pair {
  ScaledTensor tensor;
  Ktensor model;

  Pair(kernels::Backend &backend, const tensor::Tensor &x, const Ktensor &given)
      : Pair(backend, x, compared_type(x, given), given) {
    check_same_dims(x, given);
  }
  Scaled residual(double squared) const { return Scaled(squared, 2 * i64{tensor.exponent()}).root(); }

private:
  Pair(kernels::Backend &backend, const tensor::Tensor &x, ValueType type, const Ktensor &given)
      : Pair(backend, x, type, BalancedModel(given, type)) {}
  Pair(kernels::Backend &backend, const tensor::Tensor &x, ValueType type, const BalancedModel &balanced)
      : tensor(x, common_exponent(x, balanced), type, backend.threads()),
        model(balanced.over_power(tensor.exponent())) {}

  static int common_exponent(const tensor::Tensor &x, const BalancedModel &balanced) {
    const int e = unusual_exponent(x);
    return !balanced.is_zero() && balanced.exponent() - e > much_larger ? static_cast<int>(balanced.exponent()) : e;
  }
};

/// A tensor's norm, which as a pair has it may have vanished beside a far larger model. Where it is beyond f64 itself,
/// the relative residual is beyond f64 by far, whatever the norm.
Scaled norm_of(const tensor::Tensor &x, Scaled in_pair) {
  const double norm = x.facts().norm;
  if (std::isnormal(norm) || in_pair.is_zero())
    return Scaled(std::min(norm, std::numeric_limits<double>::max()));
  return in_pair;
}

} // namespace

Fit fit_from(Scaled tensor_norm, Scaled residual) {
  if (tensor_norm.is_zero())
    return residual.is_zero() ? Fit{1, 1, 0, 0} : Fit{0, 0, 1, residual.value()};
  const double relative = (residual / tensor_norm).value();
  return {1 - relative, 1 - relative * relative, relative, residual.value()};
}

Fit fit_from(double tensor_norm, double residual_squared) {
  return fit_from(Scaled(tensor_norm), Scaled(std::max(0.0, residual_squared)).root());
}

Growth Growth::of(std::span<const double> fits, double fit_error) noexcept {
  constexpr std::size_t two = 2;
  if (fits.size() < two + 1)
    return {};
  const std::size_t steps = std::min(two, fits.size() - two);
  const auto change = [&](std::size_t back) { return fits[fits.size() - 1 - back] - fits[fits.size() - two - back]; };
  const double now = change(0);
  const double before = change(steps);
  if (std::min(now, before) <= 2 * fit_error) // each fit may be off by fit_error
    return {};
  const double room = std::max(0.0, 1 - fits.back());
  const double ratio = std::pow(now / before, 1 / static_cast<double>(steps));
  return {now, ratio, ratio < 1 ? std::min(room, now * ratio / (1 - ratio)) : room};
}

ModelNorm model_norm(std::span<const double> weights, const double *v) {
  ModelNorm norm;
  for (std::size_t r = 0; r < weights.size(); ++r) {
    for (std::size_t s = 0; s < weights.size(); ++s) {
      const double term = weights[r] * weights[s] * v[r * weights.size() + s];
      norm.squared += term;
      norm.magnitude += std::abs(term);
    }
    norm.lengths += std::abs(weights[r]) * std::sqrt(std::max(0.0, v[r * weights.size() + r]));
  }
  norm.squared = std::max(0.0, norm.squared);
  return norm;
}

// The square may be off in either direction; downwards its root changes by more, but not below 0.
double ResidualSquared::root_error() const noexcept {
  const double square = std::max(0.0, value);
  const double root = std::sqrt(square);
  if (square > error)
    return error / (root + std::sqrt(square - error));
  return std::max(root, std::sqrt(square + error) - root);
}

// The terms are off by a few roundings, say four, of the type that MTTKRP adds up in.
ResidualSquared expanded_residual(double tensor_norm, const ModelNorm &model, double inner, ValueType type) {
  const double square = tensor_norm * tensor_norm;
  return {square + model.squared - 2 * inner, 4 * epsilon_of(type) * (square + model.magnitude)};
}

// An error of a 250th leaves the root two and a half digits at the worst, by a bound that rounding hardly reaches.
bool is_trustworthy(const ResidualSquared &expanded) noexcept { return expanded.value > 250 * expanded.error; }

// Each is scaled by itself: of a tensor that is divided by the power of two of a far larger model nothing would remain.
double dot(kernels::Backend &backend, const tensor::Tensor &x, const Ktensor &model) {
  check_same_dims(x, model);
  const ValueType type = compared_type(x, model);
  const ScaledTensor tensor(x, unusual_exponent(x), type, backend.threads());
  const BalancedModel balanced(model, type);
  const Ktensor scaled = balanced.over_power(balanced.exponent());
  const Comparison stored = Placed(backend, scaled, tensor->numbering()).compare(tensor->whole_view(backend));
  return Scaled(stored.inner, tensor.exponent() + balanced.exponent()).value();
}

Fit fit(kernels::Backend &backend, const tensor::Tensor &x, const Ktensor &model) {
  const Pair pair(backend, x, model);
  const Placed placed(backend, pair.model, pair.tensor->numbering());
  const double tensor_norm = pair.tensor->facts().norm;
  const ModelNorm norm = model_norm_of(pair.model);
  const Comparison stored = placed.compare(pair.tensor->whole_view(backend));
  ResidualSquared squared = expanded_residual(tensor_norm, norm, stored.inner, ValueType::f64);
  if (!is_trustworthy(squared)) {
    Cells cells(*pair.tensor);
    const bool seen = !x.sparse() || !cells.complete(); // the stored entries are what it visits
    squared = cells.residual_squared(seen ? stored : placed.compare(cells.view(backend)), norm);
  }
  return fit_from(norm_of(x, Scaled(tensor_norm, pair.tensor.exponent())), pair.residual(squared.value));
}

} // namespace td::solvers
