// These functions cut a stored form into ranges of entries that are worked on one after the other.
#pragma once

#include <vector>

#include "kernels/kernels.hpp"

namespace td::tensor {

/// The result is empty where the ranges have nothing in common.
Range common(Range a, Range b);

/// Ranges of at most `most` entries that make all of a form. They begin with rows of a sorted copy (with segments of
/// rows, where it has tiles), except within one that is longer; none holds both the end of such a row and entries of
/// others. Those of a dense tensor are slabs of one index or more in the mode
/// that is slowest in memory, the last one if nothing else is said, however long. Of a form in host memory.
std::vector<Range> spans_of(const kernels::TensorView &host, i64 most);

/// Ranges that make all of a form that Backend::unfolding_normal takes, and each could be a tensor by itself for it: of
/// coordinates in fibers along `mode` at most `most` entries or the rest of a fiber; slabs of a dense tensor as above,
/// but of the mode of the slabs one range.
std::vector<Range> fiber_spans(const kernels::TensorView &host, int mode, i64 most);

/// Some coordinates, or slabs of a dense tensor, as a tensor by themselves.
class Slice {
public:
  /// The arrays of x may lack other entries.
  Slice(const kernels::TensorView &x, Range entries);
  Slice(const Slice &) = delete;
  Slice &operator=(const Slice &) = delete;
  /// Valid as long as this.
  const kernels::TensorView &view() const noexcept { return view_; }

private:
  kernels::TensorView view_;
  std::vector<const i64 *> columns_; // of coordinates
  std::vector<i64> dims_;            // of a dense tensor
};

/// The rows of a sorted copy that hold these entries.
Range rows_with(const kernels::SortedView &host, Range entries);

/// What a call of MTTKRP on a sparse tensor becomes over such ranges, in their order.
std::vector<kernels::MttkrpArgs> steps_of(const kernels::TensorView &host, const kernels::MttkrpArgs &args,
                                          const std::vector<Range> &spans);

/// SlabStep is what the call becomes for one slab of a dense tensor: a tensor by itself, with part of
/// the factor of their mode.
class SlabStep {
public:
  SlabStep(const kernels::DenseView &x, const kernels::MttkrpArgs &args, Range entries);
  SlabStep(const SlabStep &) = delete;
  SlabStep &operator=(const SlabStep &) = delete;

  std::span<const i64> dims() const noexcept { return dims_; }
  /// The slab within a view of all elements.
  kernels::DenseView view(kernels::DenseView x) const;
  /// There is nothing to do where these have no rows.
  const kernels::MttkrpArgs &args() const noexcept { return args_; }

private:
  std::vector<i64> dims_;
  std::vector<ConstMatrix> factors_;
  kernels::MttkrpArgs args_;
  i64 begin_; // element
};

} // namespace td::tensor
