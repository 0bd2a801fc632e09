// MTTKRP in the precision that options "accumulate" and "gather" of a tensor ask for.
#pragma once

#include <vector>

#include "solvers/replica.hpp"
#include "solvers/worker.hpp"

namespace td::solvers {

/// MTTKRP of modes that share no partial product. Sums of an f32 tensor may be taken in f64 and rounded once, when they
/// are complete; rows of an f64 tensor's factors may be read from f32 copies, which are made when a factor has changed.
class MixedMttkrp {
public:
  /// `x` and `worker` must live as long.
  MixedMttkrp(const tensor::Tensor &x, const Worker &worker, kernels::Backend &backend);

  /// Computes this worker's own rows of out; its other rows may be overwritten.
  void mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out) { mttkrp(mode, factors, out, nullptr); }

  /// The same of some rows at a time, as Worker has it.
  bool cuts_rows(int mode) const { return !x_.precision().f64_sums && worker_.cuts_rows(mode); }
  void mttkrp_part(int mode, std::span<const ConstMatrix> factors, Matrix out, const tensor::LoadPart &part) {
    mttkrp(mode, factors, out, &part);
  }

  /// The caller has to say whenever a factor is no longer what the last mttkrp saw.
  void changed(int mode) { copies_[static_cast<std::size_t>(mode)].current = false; }

  /// The results have the precision of this type.
  ValueType precision() const noexcept { return gathers_ ? ValueType::f32 : x_.type(); }

private:
  struct Copy {
    DeviceMatrix rows;
    DeviceNumbers exponents;
    bool current = false;
  };
  /// Computes a part of the worker's rows, or all of them.
  void mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out, const tensor::LoadPart *part);
  void sum(int mode, std::span<const ConstMatrix> factors, Matrix out, std::span<const double *const> exponents,
           const tensor::LoadPart *part) const;
  void sum_in_f64(int mode, std::span<const ConstMatrix> factors, Matrix out);
  void gather_f32(int mode, std::span<const ConstMatrix> factors, Matrix out, const tensor::LoadPart *part);

  const tensor::Tensor &x_;
  const Worker &worker_;
  kernels::Backend &backend_;
  bool gathers_;
  DeviceMatrix sums_;
  std::vector<Copy> copies_; // one a mode, made at its first use
};

} // namespace td::solvers
