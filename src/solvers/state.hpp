// What iterations have come to, and with it what a run needs to go on: the content of a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "core/ktensor.hpp"

namespace td::solvers {

/// The iterations of all runs, those before a resume included.
struct History {
  i64 iterations = 0;
  i64 exact_residuals = 0;
  // one value an iteration
  std::vector<double> fit, fit_error, fit_change, residual, elapsed;
  // one value a solve; empty for a method that solves nothing
  std::vector<double> effective_rank, condition;
  // one value a mode, order values an iteration; 0 for fixed modes
  std::vector<double> mttkrp_seconds;
};

/// All that a run needs to go on bit for bit. Each of several processes has a block of the factors.
struct State : History {
  Ktensor factors;        // as the iteration left them; with their own weights they are the model
  double tensor_norm = 0; // with dims and rank: whether a checkpoint belongs to this tensor
  std::string settings;   // options that change the path, as text; must be equal to go on
  // The model's factors are those above, column r of factor m divided by scales[m * rank + r], with these weights,
  // which are the iteration's. Empty: the factors are the model's.
  std::vector<double> scales, weights;
};

/// Throws Status::io where a checkpoint's content cannot be what a run left, of a method that solves so many times an
/// iteration. Its checksums only say that it is as it was written.
void check_state(const State &state, i64 solves);

} // namespace td::solvers
