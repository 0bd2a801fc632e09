// This header sizes what fitting a model takes, from a layout and from what kernels and exchanges are predicted to
// take.
#pragma once

#include "plan/choices.hpp"
#include "plan/needs.hpp"
#include "plan/sweep_prediction.hpp"

namespace td::plan {

/// Refers to the layout's dims.
SolverSizes sizes_of(const Layout &l, const SweepTree &tree, const SweepPrediction &sweep, const PlanRequest &request,
                     const Asked &asked);

} // namespace td::plan
