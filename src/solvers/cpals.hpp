// CP-ALS, written once as what one worker does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.hpp"
#include "core/ktensor.hpp"
#include "core/options.hpp"
#include "plan/tensor.hpp"

namespace td::solvers {

/// What a run did, and what it has done so far when a progress callback gets it.
struct Report {
  i64 order = 0, rank = 0, workers = 1, threads = 1;
  i64 iterations = 0; // of all runs, those before a resume included
  i64 resumed_from = 0;
  i64 exact_residuals = 0;
  bool converged = false;
  double norm = 0; // of the tensor
  double explained = 0, relative = 0;
  double seconds = 0, seconds_init = 0, seconds_mttkrp = 0, seconds_solve = 0, seconds_fit = 0;
  std::string stop_reason, format, devices, init;
  std::string checkpoint_error; // why the last checkpoint could not be written; empty if it was, or none was asked for
  // one value an iteration
  std::vector<double> fit, fit_error, fit_change, residual, elapsed;
  // one value a solve
  std::vector<double> effective_rank, condition;
  // one value a mode, order values an iteration; 0 for fixed modes
  std::vector<double> mttkrp_seconds;
};

/// All that a run needs to go on bit for bit.
struct State {
  Ktensor factors; // normalized as the iteration left them; weights are the iteration's
  i64 iterations = 0;
  std::vector<double> fit, fit_error, fit_change, residual, elapsed, effective_rank, condition, mttkrp_seconds;
  i64 exact_residuals = 0;
  double tensor_norm = 0; // with dims and rank: whether a checkpoint belongs to this tensor
  std::string settings;   // options that change the path, as text; must be equal to go on
};

struct CpalsRequest {
  const plan::Tensor *tensor = nullptr;
  i64 rank = 0;
  const Ktensor *init = nullptr; // or null
  Options options;
  std::vector<std::shared_ptr<kernels::Backend>> backends; // one a worker
  std::string devices;                                     // the context's description
  std::function<bool(const Report &)> progress;            // true: go on; may be empty
  /// Writes a checkpoint and gives why that failed, or nothing; empty: none asked for.
  std::function<std::string(const State &)> save;
  std::optional<State> resume;
};

struct CpalsResult {
  Ktensor model;
  Report report;
  bool stopped = false; // by the callback
};

CpalsResult cpals(const CpalsRequest &request);

} // namespace td::solvers
