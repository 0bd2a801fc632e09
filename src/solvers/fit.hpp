// How far a ktensor is from a tensor.
#pragma once

#include <memory>

#include "core/ktensor.hpp"
#include "plan/tensor.hpp"

namespace td::solvers {

struct Fit {
  double fit = 0;       // 1 - |X - M| / |X|
  double explained = 0; // 1 - |X - M|^2 / |X|^2
  double relative = 0;  // |X - M| / |X|
  double residual = 0;  // |X - M|
};

/// From |X|, and |X - M|^2 clamped at 0. |X| = 0: fit and explained 1, relative 0 if the residual is 0 too, else fit
/// and explained 0 and relative 1.
Fit fit_from(double tensor_norm, double residual_squared);

/// Whether |X|^2 + |M|^2 - 2 <X, M> still has digits when the terms were computed in `type`.
bool residual_is_trustworthy(double tensor_norm, double model_norm, double residual_squared, ValueType type);

/// |X - M|^2 entry by entry: exact for dense tensors and for sparse ones with few enough cells to visit them all;
/// otherwise over the stored entries, with |M|^2 outside them from the Gram matrices.
double exact_residual_squared(kernels::Backend &backend, const plan::Tensor &x, const Ktensor &model);

// Numbers that are beyond f64 are infinite, of their sign.

double dot(kernels::Backend &backend, const plan::Tensor &x, const Ktensor &model);
Fit fit(kernels::Backend &backend, const plan::Tensor &x, const Ktensor &model);

} // namespace td::solvers
