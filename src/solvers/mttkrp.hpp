// MTTKRP over all workers of a context, for a caller who wants just that.
#pragma once

#include <memory>
#include <vector>

#include "core/ktensor.hpp"
#include "tensor/tensor.hpp"

namespace td::solvers {

/// A caller's column-major matrices of the tensor's value type, each as a matrix of its columns: row r is column r.
struct CallerFactors {
  std::vector<ConstMatrix> columns; // [order] rank x dims[m]; that of the mode is not read
  bool on_device = false;           // in the memory() of the first backend; else in host memory
};

struct CallerResult {
  Matrix columns;         // rank x dims[mode]
  bool on_device = false; // as those of the factors
  Matrix block{};         // where processes share the tensor: the rows of the worker's block (tensor/row_blocks), on
                          // the host, which are written instead of the columns
};

/// result := MTTKRP of all of x. Nothing is written unless all of the result is finite: else Status::numerical. Throws
/// Status::argument, naming mode, row and column, for a factor that is not finite.
void mttkrp(const std::vector<std::shared_ptr<kernels::Backend>> &backends, const tensor::Tensor &x, int mode,
            const CallerFactors &factors, const CallerResult &result);

/// The same with the factors of a ktensor of the tensor's dims and type.
void mttkrp(const std::vector<std::shared_ptr<kernels::Backend>> &backends, const tensor::Tensor &x, int mode,
            const Ktensor &factors, const CallerResult &result);

/// The result of processes, each of which has the rows of its block in one matrix of all rows: all get it. All of them
/// call it, once for all their workers; `processes` are not these.
void give(Processes &processes, kernels::Backend &backend, Matrix all, const CallerResult &result);

} // namespace td::solvers
