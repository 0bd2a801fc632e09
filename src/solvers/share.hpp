// What part of a tensor's work is one worker's.
#pragma once

#include <vector>

#include "core/communicator.hpp"
#include "plan/tensor.hpp"

namespace td::solvers {

/// Every worker owns some rows of each factor, maybe none.
class Share {
public:
  /// With `deterministic` each worker reads all stored entries for its own rows where others would add up partial
  /// results, and adds them in stored order, so that sums do not depend on the number of workers or threads.
  Share(const plan::Tensor &x, int worker, int workers, bool deterministic);

  Range own(int mode) const { return owned(mode)[static_cast<std::size_t>(worker_)]; }
  std::span<const Range> owned(int mode) const { return owned_[static_cast<std::size_t>(mode)]; }

  /// The cells of a group of modes that each worker computes the partial product of.
  std::vector<Range> cells(int group) const;
  bool deterministic() const noexcept { return deterministic_; }

  /// Computes this worker's own rows of out; its other rows may be overwritten.
  void mttkrp(kernels::Backend &backend, Communicator &others, int mode, std::span<const ConstMatrix> factors,
              Matrix out) const;

private:
  const plan::Tensor &x_;
  int worker_;
  int workers_;
  bool deterministic_;
  bool by_rows_;
  std::vector<std::vector<Range>> owned_; // [order][workers]
};

} // namespace td::solvers
