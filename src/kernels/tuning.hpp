// What a backend prefers and predicts: read by plans, and by whoever decides what to give to its kernels.
#pragma once

#include <span>
#include <string>

#include "kernels/kernels.hpp"

namespace td::kernels {

/// What decisions for a GPU go by: its sizes. Where there is none, an H200's stand for them.
struct Chip {
  int multiprocessors = 132;
  i64 shared_bytes = i64{227} << 10; // of shared memory that a block can have
  i64 cache_bytes = i64{60} << 20;   // of the second-level cache
  double memory_rate = 4.9e12;       // bytes a second, as the memory's clock and width say
  i64 memory_bytes = 0;              // that copies of tensors can take when nothing else takes any; 0: not known
};

/// What a backend's machine can do with all its threads; 0: not known.
struct Rates {
  double read = 0;        // bytes a second, one after the other, from memory
  double near_rows = 0;   // bytes a second of rows in no order, from a first-level cache
  double middle_rows = 0; // the same from a second-level cache
  double far_rows = 0;    // the same from memory
  double operations = 0;  // a second, of multiply-adds in f64; each counts two
};

/// What a function would do, predicted from sizes alone. The bytes are of workspace.
struct Prediction {
  std::string kernel;    // how it goes over the entries; empty: the backend does not say
  std::string conflicts; // how sums into one row are kept apart
  double bytes = 0;
  double seconds = 0;                         // 0: the backend does not say
  DenseKernel dense = DenseKernel::automatic; // that takes it, of a backend that has several
};

/// A backend that says nothing here works all the same.
class Tuning {
public:
  virtual ~Tuning() = default;

  /// The GPU that tensors are stored for, if it is one.
  virtual Chip chip() const { return {}; }
  /// Measured when first asked for, once a process.
  virtual Rates rates() const { return {}; }
  /// What mttkrp would do at these rates. Of views and matrices only sizes are looked at: pointers may be null.
  virtual Prediction predict_mttkrp(const TensorView &, const MttkrpArgs &, const Rates &) const { return {}; }
  /// The same of mttkrp_cells.
  virtual Prediction predict_mttkrp_cells(const CellsView &, const MttkrpArgs &, const Rates &) const { return {}; }
  /// The same of mttkrp_slabs, at a rank.
  virtual Prediction predict_mttkrp_slabs(const DenseView &, i64 /*rank*/, const Rates &) const { return {}; }
  /// Rates that decisions go by, which never come from a measurement: those of a machine like this.
  virtual Rates nominal_rates() const { return {}; }
  /// What bringing a factor up to date from its MTTKRP takes: the solve, norms and the Gram matrix.
  virtual Prediction predict_update(i64 /*rows*/, i64 /*rank*/, ValueType, const Rates &) const { return {}; }

  /// Whether mttkrp of such an f64 tensor is faster with f32 copies of the factors, and takes them.
  virtual bool gathers_f32(const TensorView &) const { return false; }
};

} // namespace td::kernels
