// The options of scope "cpals", read and checked.
#pragma once

#include <string>
#include <vector>

#include "core/options.hpp"
#include "core/types.hpp"
#include "plan/settings.hpp"

namespace td::solvers {

/// The words of option "exact_residual", in its order.
enum class ExactResidual { automatic, never, always };

/// What the driver goes by, whatever the method, which shares these options with all others.
struct RunSettings {
  i64 max_iters = 0;
  double tol = 0;
  double max_seconds = 0;
  std::string init; // as the report tells it
  bool nvecs = false;
  u64 seed = 0;
  bool arrange = true;
  bool fixsigns = true;
  bool distributed = false; // option "model"
  bool deterministic = false;
  plan::Overlap overlap = plan::Overlap::automatic;
  ExactResidual exact_residual = ExactResidual::automatic;
  bool breakdown = false;
  i64 checkpoint_iters = 0;
  double checkpoint_seconds = 0;

  explicit RunSettings(const Options &options);

  /// Writes those settings that decide what the next iteration computes from a state, as lines of name=value.
  std::string path() const;
};

/// CP-ALS's own.
struct CpalsSettings : plan::UpdateOrder {
  double ridge = 0;
  plan::Solve solve = plan::Solve::normal;

  CpalsSettings(const Options &options, int order);

  /// All of them, as lines of name=value.
  std::string path() const;
};

/// Throws Status::argument if a checkpoint's path() is not this run's, naming what differs.
void check_same_path(const std::string &checkpoint, const std::string &run);

} // namespace td::solvers
