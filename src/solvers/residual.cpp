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

bool few_enough_cells(const tensor::Tensor &x) {
  const auto cells = checked_product(x.dims());
  const auto most = checked_multiply(x.facts().nnz, cells_per_entry);
  return cells && most && *cells <= std::max(*most, cells_at_least);
}

} // namespace

Range compared_entries(i64 entries, int worker, int workers) {
  const i64 blocks = count_blocks(entries);
  const Range mine = part_of({0, blocks}, worker, workers);
  if (mine.size() == 0)
    return {};
  return {part_of({0, entries}, mine.begin, blocks).begin, part_of({0, entries}, mine.end - 1, blocks).end};
}

Comparison compare_entries(kernels::Backend &backend, Communicator &others, const tensor::Placement &x,
                           const double *weights, std::span<const ConstMatrix> factors) {
  const i64 entries = x.all_entries();
  const i64 blocks = count_blocks(entries);
  DeviceNumbers sums(backend, 3 * blocks, "sums of a residual");
  sums.upload(std::vector<double>(static_cast<std::size_t>(3 * blocks), 0.0));
  const Range mine = part_of({0, blocks}, others.rank(), others.size());
  std::vector<Range> parts;
  for (i64 b = mine.begin; b < mine.end; ++b) {
    const Range block = part_of({0, entries}, b, blocks);
    parts.push_back({block.begin - x.first_entry(), block.end - x.first_entry()});
  }
  x.each(backend, parts, [&](const kernels::TensorView &view, std::size_t k) {
    if (parts[k].size() > 0)
      backend.compare(view, weights, factors, parts[k], sums.data() + 3 * (mine.begin + static_cast<i64>(k)));
  });
  others.allreduce_sum(sums.span()); // each block's sums plus zeros
  const std::vector<double> of_blocks = sums.download();
  Comparison total;
  for (std::size_t b = 0; b < of_blocks.size(); b += 3) {
    total.difference += of_blocks[b];
    total.model_square += of_blocks[b + 1];
    total.inner += of_blocks[b + 2];
  }
  return total;
}

Cells::Cells(const tensor::Tensor &x)
    : x_(x), complete_(!x.sparse() || (x.numbering().is_index() && few_enough_cells(x))) {}

tensor::Placement Cells::view(kernels::Backend &backend, const tensor::Part &part, Communicator &others) {
  if (visits_stored())
    return part.view_of(compared_entries(x_.facts().nnz, others.rank(), others.size()));
  return view(backend);
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
