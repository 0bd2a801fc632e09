// How far a ktensor is from a tensor.
#pragma once

#include <memory>
#include <span>

#include "core/ktensor.hpp"
#include "core/scaled.hpp"
#include "tensor/tensor.hpp"

namespace td::solvers {

struct Fit {
  double fit = 0;       // 1 - |X - M| / |X|
  double explained = 0; // 1 - |X - M|^2 / |X|^2
  double relative = 0;  // |X - M| / |X|
  double residual = 0;  // |X - M|
};

/// The fit follows from |X| and |X - M|. For |X| = 0 fit and explained are 1 and relative is 0 if the residual is 0
/// too, else fit and explained are 0 and relative is 1.
Fit fit_from(Scaled tensor_norm, Scaled residual);
/// The same from |X - M|^2, clamped at 0.
Fit fit_from(double tensor_norm, double residual_squared);

/// How fits went on in the last iterations, and where that leads.
struct Growth {
  double change = 0; // in the last iteration
  double ratio = 0;  // to the change before, of the last two iterations
  double left = 0;   // change * (ratio + ratio^2 + ...), as far as a fit of 1 leaves room

  /// All 0 where rounding or fits that are too few or do not grow tell nothing. The first iteration has no change:
  /// there was no model before it.
  static Growth of(std::span<const double> fits, double fit_error) noexcept;
};

/// |M|^2 and what its rounding is relative to. Components that nearly cancel make the second much larger than the
/// first.
struct ModelNorm {
  double squared = 0;   // sum over components r, s of w_r w_s v_rs, v the product of all Gram matrices; not below 0
  double magnitude = 0; // sum of |w_r w_s v_rs|
  double lengths = 0;   // sum over r of |w_r| sqrt(v_rr)
};
ModelNorm model_norm(std::span<const double> weights, const double *v);

/// A squared residual, and how far rounding may have moved it.
struct ResidualSquared {
  double value = 0;
  double error = 0;
  double root_error() const noexcept; // of the root of value
};

/// |X|^2 + |M|^2 - 2 <X, M>, the terms computed in `type`.
ResidualSquared expanded_residual(double tensor_norm, const ModelNorm &model, double inner, ValueType type);

/// Whether it still has digits.
bool is_trustworthy(const ResidualSquared &expanded) noexcept;

// Numbers that are beyond f64 are infinite, of their sign.

double dot(kernels::Backend &backend, const tensor::Tensor &x, const Ktensor &model);
Fit fit(kernels::Backend &backend, const tensor::Tensor &x, const Ktensor &model);

} // namespace td::solvers
