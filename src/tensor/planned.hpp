// This header gives plans and checks of memory for tensors that there are.
#pragma once

#include "plan/plan.hpp"
#include "tensor/tensor.hpp"

namespace td::tensor {

plan::Layout layout_of(const Tensor &x, const plan::PlanRequest &request);

plan::Plan plan_of(const Tensor &x, const plan::PlanRequest &request);

/// The plan of as many processes as the request counts with. The entries, which are looked at but not stored, are
/// partitioned as these would.
plan::Plan plan_of_processes(const EntriesView &entries, const plan::PlanRequest &request);

/// Throws Status::host_memory, with what would need less, if CP-ALS does not fit. Gives the partial products that
/// sweeps of a dense tensor go through; of a sparse one none.
plan::SweepTree require_solver(const Tensor &x, const plan::PlanRequest &request, bool checkpoint);

/// Throws the same if one MTTKRP does not fit.
void require_mttkrp(const Tensor &x, const plan::PlanRequest &request, int mode);

} // namespace td::tensor
