// MTTKRP over all workers of a context, for a caller who wants just that.
#pragma once

#include <memory>
#include <vector>

#include "plan/tensor.hpp"

namespace td::solvers {

/// out := MTTKRP of all of x. Factors (host memory, of the tensor's value type) and out are rank-contiguous.
void mttkrp(const std::vector<std::shared_ptr<kernels::Backend>> &backends, const plan::Tensor &x, int mode,
            std::span<const ConstMatrix> factors, Matrix out);

} // namespace td::solvers
