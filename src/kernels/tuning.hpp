// What a backend prefers and predicts: read by plans, and by whoever decides what to give to its kernels.
#pragma once

#include <span>
#include <string>

#include "kernels/kernels.hpp"

namespace td::kernels {

/// Whether it pays on a GPU to read rows from copies in f32: a column of a factor takes 20 bytes a row to copy (two
/// passes read 8, one writes 4), and what an entry fetches of it is 4 bytes less.
constexpr bool pays_to_gather(std::span<const i64> dims, i64 nnz) noexcept {
  double rows = 0;
  for (const i64 dim : dims)
    rows += static_cast<double>(dim);
  return 4 * static_cast<double>(nnz) * static_cast<double>(dims.size() - 1) > 20 * rows;
}

/// What a backend's machine can do with all its threads; 0: not known.
struct Rates {
  double read = 0;        // bytes a second, one after the other, from memory
  double near_rows = 0;   // bytes a second of rows in no order, from a first-level cache
  double middle_rows = 0; // the same from a second-level cache
  double far_rows = 0;    // the same from memory
  double operations = 0;  // a second, of multiply-adds in f64; each counts two
};

/// What a function would do, told from sizes alone. The bytes are of memory that it takes for a while.
struct Prediction {
  std::string kernel;    // how it goes over the entries; empty: the backend does not say
  std::string conflicts; // how sums into one row are kept apart
  double bytes = 0;
  double seconds = 0; // 0: the backend does not say
};

/// A backend that says nothing here works all the same.
class Tuning {
public:
  virtual ~Tuning() = default;

  /// Measured when first asked for, once a process.
  virtual Rates rates() const { return {}; }
  /// What mttkrp would do at these rates. Of views and matrices only sizes are looked at: pointers may be null.
  virtual Prediction predict_mttkrp(const TensorView &, const MttkrpArgs &, const Rates &) const { return {}; }
  /// What bringing a factor up to date from its MTTKRP takes: the solve, norms and the Gram matrix.
  virtual Prediction predict_update(i64 /*rows*/, i64 /*rank*/, ValueType, const Rates &) const { return {}; }

  /// Whether mttkrp of such an f64 tensor is faster with f32 copies of the factors, and takes them.
  virtual bool gathers_f32(const TensorView &) const { return false; }
};

} // namespace td::kernels
