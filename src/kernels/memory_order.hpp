// Dense views whose elements lie at strides: the order of their modes in memory, and work on them with the modes in
// that order, which is all that MTTKRP needs to take an array in any order without a copy.
#pragma once

#include <array>
#include <vector>

#include "kernels/building.hpp"
#include "kernels/kernels.hpp"

namespace td::kernels {

/// The strides of a view, those of one without gaps, too.
std::array<i64, max_order> strides_of(const DenseView &x);

/// The modes from the one with the smallest stride to the one with the largest. Modes of a dim of 1 come first.
std::array<int, max_order> modes_in_memory(const DenseView &x);

/// The strides of a copy in the order of memory and without gaps; empty where the first index runs fastest in it.
std::vector<i64> copied_strides(const DenseView &x);

/// The mode whose slices are neighbours in memory, one after the other: slabs.
int slowest_mode(const DenseView &x);

/// A view, and what MTTKRP of it is given, with the modes in the order of memory; without strides where there are no
/// gaps.
class InMemoryOrder {
public:
  explicit InMemoryOrder(const DenseView &x);
  InMemoryOrder(const DenseView &x, const MttkrpArgs &args);
  InMemoryOrder(const InMemoryOrder &) = delete;
  InMemoryOrder &operator=(const InMemoryOrder &) = delete;

  // Valid as long as this and what it was made from:
  const DenseView &view() const noexcept { return view_; }
  const MttkrpArgs &args() const noexcept { return args_; }
  /// Factors for the view.
  std::vector<ConstMatrix> ordered(std::span<const ConstMatrix> factors) const;
  /// The place of a mode.
  int place_of(int mode) const;

private:
  std::array<int, max_order> modes_;
  std::vector<i64> dims_, strides_;
  DenseView view_;
  std::vector<ConstMatrix> factors_;
  std::vector<const double *> exponents_;
  MttkrpArgs args_;
};

/// Backend::sum_elements for one block, in host memory, and as it is defined.
ElementSums sums_of(const DenseView &x, Range elements, double scale);

} // namespace td::kernels
