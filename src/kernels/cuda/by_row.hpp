// Entries in the order of their rows: what sums in a fixed order need.
#pragma once

#include "core/views.hpp"
#include "kernels/backend.hpp"
#include "kernels/cuda/gpu.hpp"

namespace td::kernels::cuda {

/// Pairs of a row and an entry's number; to be filled by a kernel, then sorted by row. Those of one row keep their
/// order.
class ByRow {
public:
  ByRow(Gpu &device, i64 count);
  u64 *row() const noexcept { return sorted_ ? row_after_.data() : row_.data(); }
  i64 *number() const noexcept { return sorted_ ? number_after_.data() : number_.data(); }
  /// No row is larger than `largest`.
  void sort(u64 largest);

private:
  Gpu &device_;
  i64 count_;
  bool sorted_ = false;
  Scratch<u64> row_, row_after_;
  Scratch<i64> number_, number_after_;
};

/// Backend::find_rows.
void find_rows(Gpu &device, const i64 *row_index, const i64 *row_begin, std::span<const RowQuery> wanted,
               std::span<RowPlace> found);

/// a := 0, its padding untouched.
void set_zero(Gpu &device, Matrix a);

/// to[k] := the sum of from[0 .. k].
void running_sum(Gpu &device, const i64 *from, i64 count, i64 *to);

} // namespace td::kernels::cuda
