// A part is what one worker holds of a tensor. On a device with memory of its own that is the entries which the worker
// sums and no others, so that another device adds room; in the host's memory all workers share what is stored there.
#pragma once

#include <vector>

#include "tensor/sharding.hpp"

namespace td::tensor {

/// The stored entries that a portion of a sorted copy sums, and their rows.
Selection select_portion(const kernels::SortedView &x, const Portion &portion);
/// Entries one after the other, of anything but a dense tensor.
Selection select_range(const kernels::TensorView &x, Range entries);

/// What this worker does of MTTKRP. Whole forms stay those of a dense tensor, whose rows are contiguous in one mode
/// alone, and of entries in no order of rows where no sum may be split: each worker then looks for its rows in all of
/// them.
class Part {
public:
  /// References must live as long.
  Part(const Tensor &x, const Sharding &sharding, int worker, kernels::Backend &backend);

  /// The rows of this worker's portion of a mode that is alone in its group; or, where the sharding is by entries, the
  /// sums of its entries into all rows. Other rows may be overwritten. `args` are those for the whole tensor.
  void mttkrp(int mode, kernels::MttkrpArgs args) const;
  /// The same for its portion of a group's cells.
  void merged_mttkrp(int group, kernels::MttkrpArgs args) const;
  /// MTTKRP in a mode of a group over those of its cells that args.entries tell: all, or always the same ones.
  void cells_mttkrp(int group, kernels::MttkrpArgs args) const;

  /// A view of what is stored that has these entries: always the same ones, in the order of Tensor::whole_view.
  Placement view_of(Range entries) const;

private:
  Placement place(int number, const StoredForm &some) const;
  void compute(const Placement &whole, kernels::MttkrpArgs args, const Portion &portion) const;
  void compute_own(int number, kernels::MttkrpArgs args, const Portion &portion) const;
  bool has_own() const noexcept { return !forms_.empty(); }

  const Tensor &x_;
  const Sharding &sharding_;
  int worker_;
  kernels::Backend &backend_;
  std::vector<StoredForm> forms_; // parts of the tensor's forms; none where the whole ones are worked on
  FormBytes all_;                 // of these
};

} // namespace td::tensor
