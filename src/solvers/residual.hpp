// The residual computed entry by entry.
#pragma once

#include <mutex>
#include <optional>

#include "comm/communicator.hpp"
#include "solvers/fit.hpp"
#include "tensor/part.hpp"

namespace td::solvers {

/// Sums over entries of (x - m)^2, m^2 and x m.
struct Comparison {
  double difference = 0;
  double model_square = 0;
  double inner = 0;
};

/// Compares all entries of a form, partitioned between the workers; weights and factors are in the backend's memory. Of
/// the form `x` may be the part that has this worker's. The sums do not depend on how many workers there are.
Comparison compare_entries(kernels::Backend &backend, Communicator &others, const tensor::Placement &x,
                           const double *weights, std::span<const ConstMatrix> factors);

/// What is visited for an exact residual: all cells of the tensor if it is dense or has few enough of them and all
/// their rows are kept, else its stored entries. All workers share it; a copy with all cells is made when it is first
/// needed.
class Cells {
public:
  explicit Cells(const tensor::Tensor &x);
  bool complete() const noexcept { return complete_; }
  tensor::Placement view(kernels::Backend &backend);

  /// Compares them, each worker what it holds already; in order, so that the sums do not depend on how many workers
  /// there are.
  Comparison compare(kernels::Backend &backend, Communicator &others, const tensor::Part &part, bool in_order,
                     const double *weights, std::span<const ConstMatrix> factors);

  /// |X - M|^2 from a comparison over view(), and |M|^2 for the cells outside it.
  ResidualSquared residual_squared(const Comparison &over_view, const ModelNorm &model) const;

private:
  bool visits_stored() const noexcept { return !x_.sparse() || !complete_; }

  const tensor::Tensor &x_;
  bool complete_;
  std::once_flag once_;
  std::optional<formats::Dense> all_;
  tensor::Resident resident_;
};

} // namespace td::solvers
