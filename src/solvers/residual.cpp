#include "solvers/residual.hpp"

#include <algorithm>
#include <cmath>

#include "core/checked.hpp"
#include "solvers/replica.hpp"
#include "tensor/export.hpp"

namespace td::solvers {

namespace {

// A sparse tensor is copied into a dense one if that takes no more than 8 times its entries, or at most half a
// megabyte.
constexpr i64 cells_per_entry = 8;
constexpr i64 cells_at_least = i64{1} << 16;

// Entries are compared in blocks, the same however many workers there are, and the blocks' sums added in order. There
// are 64, or more where those would be longer than what is streamed at once.
i64 count_blocks(i64 entries) { return std::max<i64>(64, (entries + (i64{1} << 22) - 1) >> 22); }

/// A worker's blocks lie one after the other.
Range compared_entries(i64 entries, int worker, int workers) {
  const i64 blocks = count_blocks(entries);
  const Range mine = part_of({0, blocks}, worker, workers);
  if (mine.size() == 0)
    return {};
  return {part_of({0, entries}, mine.begin, blocks).begin, part_of({0, entries}, mine.end - 1, blocks).end};
}

DeviceNumbers zeros(kernels::Backend &backend, i64 blocks) {
  DeviceNumbers sums(backend, 3 * blocks, "sums of a residual");
  sums.upload(std::vector<double>(static_cast<std::size_t>(3 * blocks), 0.0));
  return sums;
}

/// Each range has three sums.
void compare_ranges(kernels::Backend &backend, const tensor::Placement &x, const std::vector<Range> &ranges,
                    const double *weights, std::span<const ConstMatrix> factors, double *sums) {
  x.each(backend, ranges, [&](const kernels::TensorView &view, std::size_t k) {
    if (ranges[k].size() > 0)
      backend.compare(view, weights, factors, ranges[k], sums + 3 * k);
  });
}

Comparison total_of(const std::vector<double> &sums) {
  Comparison total;
  for (std::size_t b = 0; b < sums.size(); b += 3) {
    total.difference += sums[b];
    total.model_square += sums[b + 1];
    total.inner += sums[b + 2];
  }
  return total;
}

/// Each worker compares all entries of an x of its own.
Comparison compare_own(kernels::Backend &backend, Communicator &others, const tensor::Placement &x, i64 entries,
                       const double *weights, std::span<const ConstMatrix> factors) {
  const i64 blocks = count_blocks(entries);
  const DeviceNumbers sums = zeros(backend, blocks);
  std::vector<Range> ranges;
  for (i64 b = 0; b < blocks; ++b)
    ranges.push_back(part_of({0, entries}, b, blocks));
  compare_ranges(backend, x, ranges, weights, factors, sums.data());
  const Comparison own = total_of(sums.download());
  DeviceNumbers total(backend, 3, "sums of a residual");
  total.upload(std::vector<double>{own.difference, own.model_square, own.inner});
  others.allreduce_sum(total.span());
  return total_of(total.download());
}

bool few_enough_cells(const tensor::Tensor &x) {
  const auto cells = checked_product(x.dims());
  const auto most = checked_multiply(x.facts().nnz, cells_per_entry);
  return cells && most && *cells <= std::max(*most, cells_at_least);
}

} // namespace

Comparison compare_entries(kernels::Backend &backend, Communicator &others, const tensor::Placement &x,
                           const double *weights, std::span<const ConstMatrix> factors) {
  const i64 entries = x.all_entries();
  const i64 blocks = count_blocks(entries);
  const DeviceNumbers sums = zeros(backend, blocks);
  const Range mine = part_of({0, blocks}, others.rank(), others.size());
  std::vector<Range> ranges;
  for (i64 b = mine.begin; b < mine.end; ++b) {
    const Range block = part_of({0, entries}, b, blocks);
    ranges.push_back({block.begin - x.first_entry(), block.end - x.first_entry()});
  }
  compare_ranges(backend, x, ranges, weights, factors, sums.data() + 3 * mine.begin);
  others.allreduce_sum(sums.span()); // each block's sums plus zeros
  return total_of(sums.download());
}

Cells::Cells(const tensor::Tensor &x)
    : x_(x), complete_(!x.sparse() || (x.numbering().is_index() && few_enough_cells(x))) {}

Comparison Cells::compare(kernels::Backend &backend, Communicator &others, const tensor::Part &part, bool in_order,
                          const double *weights, std::span<const ConstMatrix> factors) {
  if (!visits_stored())
    return compare_entries(backend, others, view(backend), weights, factors);
  if (x_.distribution() != nullptr)
    return compare_own(backend, others, x_.whole_view(backend), x_.stored_entries(), weights, factors);
  if (part.has_own() && !in_order)
    return compare_own(backend, others, part.own_view(), part.own_view().entries(), weights, part.own_factors(factors));
  const Range mine = compared_entries(x_.facts().nnz, others.rank(), others.size());
  return compare_entries(backend, others, part.view_of(mine), weights, factors);
}

tensor::Placement Cells::view(kernels::Backend &backend) {
  if (visits_stored())
    return x_.whole_view(backend);
  std::call_once(once_, [&] {
    formats::Dense all;
    all.dims.assign(x_.dims().begin(), x_.dims().end());
    all.values = ValueBuffer(x_.type(), checked_product(x_.dims()).value(), "all cells of a small sparse tensor");
    tensor::export_dense(x_, {}, x_.type(), all.values.data());
    all_ = std::move(all);
  });
  return resident_.on(backend, 0, all_->view());
}

// An entry of the model is off by roundings of its terms, so over all entries they are of the components' lengths. What
// is outside the view is a difference: it is off by roundings of |M|^2.
ResidualSquared Cells::residual_squared(const Comparison &over_view, const ModelNorm &model) const {
  const double epsilon = epsilon_of(ValueType::f64);
  const double entries = 2 * epsilon * model.lengths;
  ResidualSquared squared{over_view.difference, (2 * std::sqrt(over_view.difference) + entries) * entries};
  if (!complete_) {
    squared.value += std::max(0.0, model.squared - over_view.model_square);
    squared.error += 4 * epsilon * model.magnitude;
  }
  return squared;
}

} // namespace td::solvers
