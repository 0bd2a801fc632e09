// The MTTKRPs of a sweep, as one worker computes them.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "plan/sweep_tree.hpp"
#include "solvers/mixed.hpp"

namespace td::solvers {

/// Keeps one partial product, of a group of a sparse tensor's modes (plan/groups.hpp) or of a dense tensor
/// (plan/sweep_tree.hpp), as long as no factor that is multiplied in has changed, and what is left of it summed over a
/// mode. One is enough: whoever asks for another is about to update a factor that is in this one.
class Products {
public:
  /// References must live as long. The memory is that of the largest partial product.
  Products(const tensor::Tensor &x, const Worker &worker, kernels::Backend &backend, i64 rank);

  /// Computes this worker's own rows of out; its other rows may be overwritten. `product`: of a dense tensor, what to
  /// go through, with what is `left` of it, if that is not null, with at most `most_cells` rows together; null: MTTKRP
  /// of all of the tensor. Of a sparse one its groups decide.
  void mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out, const plan::PartialProduct *product = nullptr,
              const plan::PartialProduct *left = nullptr);

  /// Whether a mode's rows can be computed some at a time, as Worker has it.
  bool cuts_rows(int mode) const {
    return x_.sparse() && !x_.groups().shared(x_.groups().group_of(mode)) && alone_.cuts_rows(mode);
  }
  void mttkrp_part(int mode, std::span<const ConstMatrix> factors, Matrix out, const tensor::LoadPart &part) {
    alone_.mttkrp_part(mode, factors, out, part);
  }

  /// Makes room for dense partial products, before the first is asked for.
  void reserve(i64 most_cells);

  /// Every worker has to say whenever a factor is no longer what the last mttkrp saw.
  void changed(int mode) {
    ++versions_[static_cast<std::size_t>(mode)];
    alone_.changed(mode);
  }

  /// The results have the precision of this type.
  ValueType precision() const noexcept { return alone_.precision(); }

private:
  /// A partial product in memory.
  struct Held {
    std::vector<int> modes; // kept; none: there is none
    std::vector<u64> seen;  // versions that it was computed from
    Range rows;             // of the memory
    Range cells;            // of which it holds this worker's sums; the last of them others may have sums of, too
  };

  DeviceMatrix memory_of(i64 most_cells) const;
  bool is_current(const Held &held, const std::vector<int> &modes) const;
  void sum_over_mode(const plan::PartialProduct &product, const plan::PartialProduct &left,
                     std::span<const ConstMatrix> factors);
  void compute_partial(int group, const plan::PartialProduct *product, std::span<const ConstMatrix> factors);
  void contract(const Held &held, int group, const plan::PartialProduct *product, int mode,
                std::span<const ConstMatrix> factors, Matrix out);
  void compute_cells(const Held &held, int group, const plan::PartialProduct *product, kernels::MttkrpArgs args);

  const tensor::Tensor &x_;
  const Worker &worker_;
  kernels::Backend &backend_;
  i64 rank_;
  MixedMttkrp alone_;         // of modes that share nothing
  std::vector<u64> versions_; // how often each factor has changed
  DeviceMatrix memory_;
  Held whole_;
  Held left_;
};

} // namespace td::solvers
