// What kernels here would take, for the plan, from sizes alone. Plain C++, so that it can be tested without a GPU.
#pragma once

#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

Prediction predict_mttkrp(const TensorView &x, const MttkrpArgs &args, const Rates &rates, const Chip &chip);
Prediction predict_mttkrp_cells(const CellsView &x, const MttkrpArgs &args, const Rates &rates, const Chip &chip);
Prediction predict_mttkrp_slabs(const DenseView &x, i64 rank, const Rates &rates, const Chip &chip);
/// The rates are an H200's, with as many multiprocessors as there are.
Rates nominal_rates(const Chip &chip);
Prediction predict_update(i64 rows, i64 rank, const Rates &rates, const Chip &chip);

} // namespace td::kernels::cuda
