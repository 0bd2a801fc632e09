// The run of an iterative method: start, report, stopping, progress, checkpoints, resume and scaling are the driver's,
// what an iteration does is the method's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "core/ktensor.hpp"
#include "core/options.hpp"
#include "plan/sweep_tree.hpp"
#include "solvers/breakdown.hpp"
#include "solvers/residual.hpp"
#include "solvers/settings.hpp"
#include "solvers/state.hpp"
#include "tensor/sharding.hpp"
#include "tensor/tensor.hpp"

namespace td::solvers {

/// Why a run ended: by the option of that name, or by the caller's function.
enum class StopReason { none, tol, max_iters, max_seconds, callback };
/// The word of the report; empty while the run goes on.
std::string_view name_of(StopReason reason) noexcept;

/// What a run did, and what it has done so far when a progress callback gets it.
struct Report : History {
  i64 order = 0, rank = 0, workers = 1, threads = 1;
  i64 resumed_from = 0;
  i64 exchanged_bytes = 0; // rows that this process has sent to others in this run's iterations
  bool converged = false;
  double norm = 0; // of the tensor
  double explained = 0, relative = 0;
  double fit_growth = 0; // Growth::left
  double seconds = 0, seconds_init = 0, seconds_mttkrp = 0, seconds_solve = 0, seconds_fit = 0;
  StopReason stop_reason = StopReason::none;
  std::string format, devices, init;
  std::string checkpoint_error; // why the last checkpoint could not be written; empty if it was, or none was asked for
  std::string creeping; // a sentence where a run has ended by tol though the fit may still grow by more than that
  Breakdown breakdown;  // of this run's iterations, if option "breakdown" asks for it

  // These look at the last iteration's solves, or an earlier one's of a mode that is fixed; rank and 0 without any.
  i64 smallest_effective_rank() const;
  double largest_condition() const;
};

struct RunRequest {
  const tensor::Tensor *tensor = nullptr;
  i64 rank = 0;
  /// Where factors begin, or null. Several processes give a block each, or all of it, and that of the first counts.
  const Ktensor *init = nullptr;
  Options options;
  std::vector<std::shared_ptr<kernels::Backend>> backends; // one a worker
  std::string devices;                                     // the context's description
  std::function<bool(const Report &)> progress;            // true: go on; may be empty
  /// Writes a checkpoint and gives why that failed, or nothing; empty: none asked for.
  std::function<std::string(const State &)> save;
  /// Where processes share the tensor: gives all of it (tensor/whole) to each of their workers, which all call it
  /// together, if a run in order asks.
  std::function<std::shared_ptr<const tensor::Tensor>()> whole;
  std::optional<State> resume;
};

struct RunResult {
  Ktensor model; // a block where processes share the tensor and are asked to keep their rows
  Report report;
  bool stopped = false; // by the callback
};

/// Everything that workers share, and that outlives them.
struct Problem {
  const tensor::Tensor &x; // scaled into a safe range
  const RunSettings &settings;
  const Ktensor &start; // a block of it where processes share the tensor; its weights are those of the iteration that
                        // it was left by, if there was one
  Cells &cells;
  const tensor::Sharding &sharding;
  const plan::SweepTree &tree;    // of a dense tensor
  std::span<const double> scales; // of the start, as State::scales
};

/// One worker's part of the iterations.
class Iteration {
public:
  struct Outcome {
    double residual_squared = 0; // not below 0
    bool exact = false;
    double fit_error = 0;                          // how far rounding may have moved the fit
    std::vector<double> effective_rank, condition; // one a solve
  };

  /// Seconds by the device's clock, where it has one.
  struct Times {
    double mttkrp = 0, solve = 0, fit = 0;
    std::vector<double> mttkrp_of_mode; // in the last iteration, [order]; 0 for fixed modes
  };

  virtual ~Iteration() = default;

  /// Takes the model one step further. `iteration` counts from 0 at the start of the first run. On a device this only
  /// asks for the work: measure() waits for it and says what went wrong.
  virtual void update(i64 iteration) = 0;

  /// How well the model fits now; the same on every worker.
  virtual Outcome measure() = 0;

  /// Writes factors as they are and the model's weights into what the start was or an earlier call made.
  virtual void download(Ktensor &to) const = 0;

  /// What the factors' columns are to be divided by to be the model's, as State::scales; empty: nothing.
  virtual std::vector<double> scales() const { return {}; }

  virtual const Times &times() const noexcept = 0;
};

/// An iterative method that fits a ktensor to a tensor.
class Method {
public:
  virtual ~Method() = default;

  /// What decides, besides RunSettings::path, what the next iteration computes from a state, as lines of name=value.
  virtual std::string path() const = 0;

  /// Solves in an iteration: how many numbers of effective_rank and condition each gives.
  virtual i64 solves() const { return 0; }

  /// Throws Status::argument for a given start that the method cannot begin with; null: none is given. any(here) tells
  /// whether it is so of any block of it.
  virtual void check_start(const Ktensor *, const std::function<bool(bool)> &) const {}

  /// Brings columns of a given start whose length means nothing to the method into the range of the tensor's type.
  /// `others` hold the other blocks of it.
  virtual void scale_start(Ktensor &, ValueType, const Meeting &) const {}

  virtual std::unique_ptr<Iteration> begin(const Problem &problem, kernels::Backend &backend,
                                           Communicator &others) const = 0;
};

RunResult run(const RunRequest &request, const Method &method);

} // namespace td::solvers
