// What kernels here would take, for the plan, from sizes alone. Plain C++, so that it can be tested without a GPU.
#pragma once

#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

/// What matters of a GPU besides its rates.
struct Chip {
  int multiprocessors = 0;
  double shared_bytes = 0; // that a block can have
  double cache_bytes = 0;  // of the second-level cache
};

Prediction predict_mttkrp(const TensorView &x, const MttkrpArgs &args, const Rates &rates, const Chip &chip);
Prediction predict_update(i64 rows, i64 rank, const Rates &rates);

} // namespace td::kernels::cuda
