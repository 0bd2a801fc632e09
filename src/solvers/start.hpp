// Where CP-ALS starts from.
#pragma once

#include <functional>
#include <string_view>

#include "core/ktensor.hpp"
#include "tensor/tensor.hpp"

namespace td::solvers {

/// Every factor is uniform in [0, 1), and the same on every device, in any blocks.
Ktensor random_start(kernels::Backend &backend, std::span<const i64> dims, i64 rank, ValueType type, u64 seed,
                     RowBlock block = {});

/// Leading eigenvectors of X_(n) X_(n)^T in each mode; columns beyond dims[n] are random as in random_start. The
/// entry of largest magnitude of each column is positive. Once time_is_up(), which is asked between its steps, modes
/// are left as far as they have come: not quite converged, or random. Where processes share the tensor each gets its
/// block.
Ktensor nvecs_start(
    kernels::Backend &backend, const tensor::Tensor &x, i64 rank, u64 seed,
    const std::function<bool()> &time_is_up = [] { return false; });

/// Throws Status::shape unless a ktensor, which messages call `name`, has the tensor's dims and this rank.
void check_shape(std::string_view name, const Ktensor &k, const tensor::Tensor &x, i64 rank);

/// A caller's ktensor with its weights in the first factor, in its own type; of several processes each gets its block.
Ktensor given_start(const Ktensor &init, const tensor::Tensor &x, i64 rank);

} // namespace td::solvers
