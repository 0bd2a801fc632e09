// A part is what one worker holds of a tensor. On a device with memory of its own that is the entries which the worker
// sums and no others, so that another device adds room; in the host's memory all workers share what is stored there.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "plan/sweep_tree.hpp"
#include "tensor/sharding.hpp"

namespace td::tensor {

/// The stored entries of a sorted copy that a load has, and their rows.
Selection select_load(const kernels::SortedView &x, const Load &load);
/// Entries one after the other, of anything but a dense tensor.
Selection select_range(const kernels::TensorView &x, Range entries);
/// Slabs of a dense tensor: slices of the mode that is slowest in memory.
Selection select_slabs(const kernels::DenseView &x, Range slabs);

/// Some rows, and what a worker holds of their entries, counted among all that it holds of a copy.
struct LoadPart {
  Range rows;
  Range entries;
  bool full = false; // each of the rows has some
};

/// What this worker does of MTTKRP. Where no sum may be split, each worker holds a range of each form's entries, and
/// they gather span after span: for its own rows where entries are in no order of rows. Kernels of sorted copies and
/// dense tensors cut the sum of a row by what else they work on, so each worker then computes all rows, as one alone
/// does.
class Part {
public:
  /// References must live as long.
  Part(const Tensor &x, const Sharding &sharding, int worker, kernels::Backend &backend, Communicator &others);

  /// The rows of this worker's load in a mode that is alone in its group; other rows may be overwritten. Or it gives
  /// true: all rows then have the sums of this worker's entries, to be added to those of others. `args` are those for
  /// the whole tensor.
  [[nodiscard]] bool mttkrp(int mode, kernels::MttkrpArgs args) const;
  /// Whether that can be done some rows at a time, each entry read once all the same: where a mode's copy is one tile
  /// and each worker holds its own entries of it. Of no, or of all workers.
  bool cuts_rows(int mode) const;
  /// Cuts this worker's load before some rows, ascending; together the parts are all of it.
  std::vector<LoadPart> cut_load(int mode, std::span<const i64> before) const;
  /// mttkrp for a part of the load; rows of other parts are not written.
  void mttkrp_part(int mode, kernels::MttkrpArgs args, const LoadPart &part) const;
  /// MTTKRP in a group's merged modes, for this worker's cells, which it gives: their sums add up to the cells' where
  /// several workers have some.
  Range merged_mttkrp(int group, kernels::MttkrpArgs args) const;
  /// The same of a dense tensor's partial product.
  Range partial_product(const plan::PartialProduct &product, kernels::MttkrpArgs args) const;
  /// MTTKRP in a mode of a group over those of its cells that args.entries tell: all, or always the same ones.
  void cells_mttkrp(int group, kernels::MttkrpArgs args) const;

  /// Whether workers gather the forms. With `deterministic` each then has all cells that it computed itself.
  bool gathers() const noexcept { return !held_.empty(); }
  /// Whether this worker holds what no other one does.
  bool has_own() const noexcept { return !forms_.empty(); }
  /// All that it does, of one form; and factors for it.
  Placement own_view() const;
  std::vector<ConstMatrix> own_factors(std::span<const ConstMatrix> factors) const;
  /// A view of what is stored that has these entries, in the order of Tensor::whole_view: always the same ones.
  Placement view_of(Range entries) const;

private:
  /// Each worker is to hold a range of a form, as so many of its units of equal size.
  void hold(int number, i64 units);
  bool takes_all_rows() const noexcept { return plan::computes_all_rows(x_.format(), sharding_.deterministic()); }
  /// The cells of a partial product that a worker computes of what it gathers.
  Range cells_of(const plan::PartialProduct &product, int worker) const;
  Gather gather_of(int number) const { return {others_, held_[static_cast<std::size_t>(number)], {}}; }
  Placement place(int number, const StoredForm &some) const;
  Placement place_held(int number) const;
  Range gathered_product(const plan::PartialProduct &product, kernels::MttkrpArgs args) const;
  void compute(const Placement &whole, kernels::MttkrpArgs args, const Load &load) const;
  /// All that it holds of a form, for its load.
  LoadPart own_load(int number, const Load &load) const;
  void compute_own(int number, kernels::MttkrpArgs args, const LoadPart &part) const;
  /// Where rows, or the next greater ones, stand in what this worker has of a sorted copy in one tile.
  std::vector<kernels::RowPlace> places_of(int number, std::span<const i64> rows) const;
  void sum_slabs(std::span<const i64> dims, const kernels::MttkrpArgs &args) const;

  const Tensor &x_;
  const Sharding &sharding_;
  int worker_;
  kernels::Backend &backend_;
  Communicator &others_;
  std::vector<StoredForm> forms_;        // parts of the tensor's forms; none where the whole ones are worked on
  FormBytes all_;                        // of these
  Range slabs_;                          // of a dense tensor
  std::vector<std::vector<Range>> held_; // [forms][workers] entries, where they gather them; else none
};

} // namespace td::tensor
