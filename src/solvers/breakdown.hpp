// What each worker of a run has to do, and what its time goes to.
#pragma once

#include <optional>
#include <vector>

#include "kernels/backend.hpp"
#include "tensor/sharding.hpp"

namespace td::solvers {

/// The workers' numbers stand one worker after the other.
struct Breakdown {
  std::vector<double> entries, rows;     // [workers][order] that it sums, and owns, of a mode
  std::vector<double> mttkrp, iteration; // [iterations][workers][phases] seconds
};

/// A worker's time, iteration by iteration, if it is to be measured.
class WorkerTimes {
public:
  WorkerTimes(bool wanted, kernels::Backend &backend) {
    if (wanted)
      meter_.emplace(backend);
  }

  /// The host has asked for an iteration's work: there is time to look at the one before.
  void under_way() {
    if (ended_)
      spent_.push_back(meter_->read());
    ended_ = false;
  }
  void end_iteration() {
    if (meter_)
      meter_->cut();
    ended_ = meter_.has_value();
  }
  /// Ends measuring, and gives the seconds of each iteration.
  std::vector<kernels::PhaseSeconds> take() {
    under_way();
    meter_.reset();
    return std::move(spent_);
  }

private:
  std::optional<kernels::PhaseMeter> meter_;
  bool ended_ = false; // an iteration that is to be read
  std::vector<kernels::PhaseSeconds> spent_;
};

/// The breakdown of a run of all workers: of those of this process, whose times come; or of the processes that run
/// together, which all call it, each with its own.
Breakdown breakdown_of(const tensor::Tensor &x, const tensor::Sharding &sharding, Processes *processes,
                       const std::vector<std::vector<kernels::PhaseSeconds>> &spent);

} // namespace td::solvers
