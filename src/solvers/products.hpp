// The MTTKRPs of a sweep, as one worker computes them.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "solvers/mixed.hpp"

namespace td::solvers {

/// Keeps the partial product of one group of modes (plan/groups.hpp) as long as no factor outside the group has
/// changed. One is enough: whoever asks for another group's is about to update a factor outside this one.
class Products {
public:
  /// `x` and `worker` must live as long. The memory is that of the largest partial product of those that are shared.
  Products(const tensor::Tensor &x, const Worker &worker, kernels::Backend &backend, i64 rank);

  /// Computes this worker's own rows of out; its other rows may be overwritten.
  void mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out);

  /// Every worker has to say whenever a factor is no longer what the last mttkrp saw.
  void changed(int mode) {
    ++versions_[static_cast<std::size_t>(mode)];
    alone_.changed(mode);
  }

  /// The results have the precision of this type.
  ValueType precision() const noexcept { return alone_.precision(); }

private:
  bool is_current(int group) const;
  void compute_partial(int group, std::span<const ConstMatrix> factors);
  void contract(int group, int mode, std::span<const ConstMatrix> factors, Matrix out);

  const tensor::Tensor &x_;
  const Worker &worker_;
  i64 rank_;
  MixedMttkrp alone_;         // of modes that share nothing
  std::vector<u64> versions_; // how often each factor has changed
  DeviceMatrix memory_;
  int group_ = -1;        // whose partial product is in memory_
  std::vector<u64> seen_; // versions that it was computed from
  Range cells_;           // of which it holds this worker's sums; the last of them others may have sums of, too
};

} // namespace td::solvers
