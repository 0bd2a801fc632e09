#include "kernels/memory_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/runs.hpp"

namespace td::kernels {

std::array<i64, max_order> strides_of(const DenseView &x) {
  std::array<i64, max_order> strides{};
  if (!x.strides.empty()) {
    std::copy(x.strides.begin(), x.strides.end(), strides.begin());
    return strides;
  }
  i64 next = 1;
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    strides[m] = next;
    next *= x.dims[m];
  }
  return strides;
}

std::array<int, max_order> modes_in_memory(const DenseView &x) {
  std::array<int, max_order> modes{};
  std::iota(modes.begin(), modes.end(), 0);
  if (x.strides.empty())
    return modes;
  const auto step = [&](int mode) { // of a dim of 1 it leads nowhere
    const auto m = static_cast<std::size_t>(mode);
    return x.dims[m] == 1 ? 0 : x.strides[m];
  };
  std::stable_sort(modes.begin(), modes.begin() + std::ssize(x.dims), [&](int a, int b) { return step(a) < step(b); });
  return modes;
}

std::vector<i64> copied_strides(const DenseView &x) {
  const auto modes = modes_in_memory(x);
  std::vector<i64> strides(x.dims.size());
  i64 next = 1;
  bool other = false; // order than that of the modes
  int before = -1;
  for (std::size_t k = 0; k < x.dims.size(); ++k) {
    const auto m = static_cast<std::size_t>(modes[k]);
    strides[m] = next;
    next *= x.dims[m];
    if (x.dims[m] > 1)
      other = other || modes[k] < std::exchange(before, modes[k]);
  }
  return other ? strides : std::vector<i64>{};
}

int slowest_mode(const DenseView &x) { return modes_in_memory(x)[x.dims.size() - 1]; }

InMemoryOrder::InMemoryOrder(const DenseView &x) : modes_(modes_in_memory(x)), view_(x) {
  if (x.strides.empty())
    return;
  i64 next = 1;
  bool gaps = false;
  for (std::size_t k = 0; k < x.dims.size(); ++k) {
    const auto m = static_cast<std::size_t>(modes_[k]);
    dims_.push_back(x.dims[m]);
    strides_.push_back(x.dims[m] == 1 ? next : x.strides[m]);
    gaps = gaps || strides_.back() != next;
    next *= x.dims[m];
  }
  view_.dims = dims_;
  view_.strides = gaps ? std::span<const i64>(strides_) : std::span<const i64>();
}

InMemoryOrder::InMemoryOrder(const DenseView &x, const MttkrpArgs &args) : InMemoryOrder(x) {
  args_ = args;
  if (x.strides.empty())
    return;
  args_.mode = place_of(args.mode);
  factors_ = ordered(args.factors);
  args_.factors = factors_;
  for (std::size_t k = 0; k < args.exponents.size(); ++k)
    exponents_.push_back(args.exponents[static_cast<std::size_t>(modes_[k])]);
  args_.exponents = exponents_;
}

std::vector<ConstMatrix> InMemoryOrder::ordered(std::span<const ConstMatrix> factors) const {
  std::vector<ConstMatrix> in_order;
  for (std::size_t k = 0; k < factors.size(); ++k)
    in_order.push_back(factors[static_cast<std::size_t>(modes_[k])]);
  return in_order;
}

int InMemoryOrder::place_of(int mode) const {
  return static_cast<int>(std::find(modes_.begin(), modes_.end(), mode) - modes_.begin());
}

ElementSums sums_of(const DenseView &x, Range elements, double scale) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ElementSums found{{0, 0, infinity, -infinity, 0}, -1, 0};
  ValueSums &s = found.sums;
  const InMemoryOrder ordered(x);
  const auto strides = strides_of(ordered.view());
  dispatch(x.type, [&](auto zero) {
    const auto *values = static_cast<const decltype(zero) *>(x.values);
    for_each_run(ordered.view().dims, std::span(strides).first(x.dims.size()), elements,
                 [&](i64 k, i64 offset, i64 count) {
                   for (i64 n = 0; n < count; ++n) {
                     const auto value = static_cast<double>(values[offset + n * strides[0]]);
                     s.add(value, scale);
                     if (!std::isfinite(value) && found.not_finite < 0) {
                       found.not_finite = k + n;
                       found.value = value;
                     }
                   }
                 });
  });
  return found;
}

} // namespace td::kernels
