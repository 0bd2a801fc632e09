#include "tensor/spans.hpp"

#include <algorithm>

#include "kernels/memory_order.hpp"

namespace td::tensor {

namespace {

/// The row (or segment) that holds an entry; `rows` for the end of all.
i64 row_holding(const kernels::SortedView &x, i64 entry) {
  return std::upper_bound(x.row_begin, x.row_begin + x.rows + 1, entry) - x.row_begin - 1;
}

i64 end_of_span(const kernels::SortedView &x, i64 begin, i64 most) {
  const i64 first = row_holding(x, begin);
  const i64 end = begin + std::min(most, x.nnz - begin);
  if (x.row_begin[first] < begin)
    return std::min(end, x.row_begin[first + 1]);
  const i64 last = x.row_begin[row_holding(x, end)];
  return last > begin ? last : end;
}

/// Rows are whole in the copy: each span has rows of its own, and zeros go to those without entries.
std::vector<kernels::MttkrpArgs> steps_by_rows(const kernels::SortedView &x, const kernels::MttkrpArgs &args,
                                               const std::vector<Range> &spans) {
  std::vector<kernels::MttkrpArgs> steps;
  const auto step = [&](Range entries, Range rows, bool add) {
    kernels::MttkrpArgs &s = steps.emplace_back(args);
    s.entries = entries;
    s.rows = common(rows, args.rows);
    s.add = add;
    if (s.rows.size() == 0)
      steps.pop_back();
  };
  i64 next = 0; // row
  for (const Range &span : spans) {
    const Range rows = rows_with(x, span);
    const bool goes_on = x.row_begin[rows.begin] < span.begin;
    const i64 begin = goes_on ? x.row_index[rows.begin] : next;
    next = x.row_index[rows.end - 1] + 1;
    step(span, {begin, next}, args.add || goes_on);
  }
  const Range rest{next, args.out.rows};
  if (!args.add)
    step({x.nnz, x.nnz}, rest, false);
  return steps;
}

/// Whether entries k - 1 and k lie in one fiber.
bool same_fiber(const kernels::CooView &x, int mode, i64 k) {
  for (int m = 0; m < static_cast<int>(x.dims.size()); ++m)
    if (m != mode && x.indices[m][k] != x.indices[m][k - 1])
      return false;
  return true;
}

/// The address of an array's element, which may not be there: of the array only some elements are.
template <class T> const T *at(const T *array, i64 element, i64 bytes = sizeof(T)) {
  return reinterpret_cast<const T *>(reinterpret_cast<std::uintptr_t>(array) +
                                     static_cast<std::uintptr_t>(element * bytes));
}

/// The mode of which slabs are slices, and the elements of a slice.
struct Slabs {
  std::size_t mode;
  i64 elements;
  explicit Slabs(const kernels::DenseView &x)
      : mode(static_cast<std::size_t>(kernels::slowest_mode(x))),
        elements(kernels::entries_of(x) / std::max<i64>(x.dims[mode], 1)) {}
};

/// The slabs of a view that begin with this element.
kernels::DenseView slabs_from(kernels::DenseView x, i64 begin, std::span<const i64> dims) {
  const Slabs slabs(x);
  const i64 place = x.strides.empty() ? begin : begin / slabs.elements * x.strides[slabs.mode];
  x.dims = dims;
  x.values = at(static_cast<const char *>(x.values), place, size_of(x.type));
  return x;
}

} // namespace

Range common(Range a, Range b) {
  const i64 begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

std::vector<Range> spans_of(const kernels::TensorView &host, i64 most) {
  const i64 nnz = kernels::entries_of(host);
  std::vector<Range> spans;
  if (const auto *dense = std::get_if<kernels::DenseView>(&host)) {
    const i64 slab = Slabs(*dense).elements;
    const i64 each = std::max<i64>(most / slab, 1) * slab;
    for (i64 begin = 0; begin < nnz; begin += each)
      spans.push_back({begin, std::min(begin + each, nnz)});
    return spans;
  }
  if (const auto *sorted = std::get_if<kernels::SortedView>(&host)) {
    for (i64 begin = 0; begin < nnz; begin = spans.back().end)
      spans.push_back({begin, end_of_span(*sorted, begin, most)});
    return spans;
  }
  const i64 count = nnz / most + (nnz % most > 0 ? 1 : 0);
  for (i64 k = 0; k < count; ++k)
    spans.push_back(part_of({0, nnz}, k, count));
  return spans;
}

std::vector<Range> fiber_spans(const kernels::TensorView &host, int mode, i64 most) {
  const i64 nnz = kernels::entries_of(host);
  if (const auto *coo = std::get_if<kernels::CooView>(&host)) {
    std::vector<Range> spans;
    for (i64 begin = 0; begin < nnz; begin = spans.back().end) {
      i64 end = begin + std::min(most, nnz - begin);
      while (end > begin && end < nnz && same_fiber(*coo, mode, end))
        --end;
      if (end == begin) // in a fiber that is longer
        for (end = begin + 1; end < nnz && same_fiber(*coo, mode, end);)
          ++end;
      spans.push_back({begin, end});
    }
    return spans.empty() ? std::vector<Range>{{0, 0}} : spans;
  }
  const auto *dense = std::get_if<kernels::DenseView>(&host);
  if (dense != nullptr && mode != kernels::slowest_mode(*dense))
    return spans_of(host, most);
  return {{0, nnz}};
}

Slice::Slice(const kernels::TensorView &x, Range entries) : view_(x) {
  if (auto *coo = std::get_if<kernels::CooView>(&view_)) {
    for (std::size_t m = 0; m < coo->dims.size(); ++m)
      columns_.push_back(at(coo->indices[m], entries.begin));
    coo->indices = columns_.data();
    coo->values = at(static_cast<const char *>(coo->values), entries.begin, size_of(coo->type));
    coo->nnz = entries.size();
  } else if (auto *dense = std::get_if<kernels::DenseView>(&view_)) {
    dims_.assign(dense->dims.begin(), dense->dims.end());
    const Slabs slabs(*dense);
    dims_[slabs.mode] = entries.size() / slabs.elements;
    *dense = slabs_from(*dense, entries.begin, dims_);
  }
}

Range rows_with(const kernels::SortedView &host, Range entries) {
  if (entries.size() == 0)
    return {};
  return {row_holding(host, entries.begin), row_holding(host, entries.end - 1) + 1};
}

std::vector<kernels::MttkrpArgs> steps_of(const kernels::TensorView &host, const kernels::MttkrpArgs &of_all,
                                          const std::vector<Range> &spans) {
  // Rows without entries behind the last one with some belong to the call: kernels may cut sums by the rows of one.
  if (spans.size() == 1 && common(spans.front(), of_all.entries).size() == of_all.entries.size())
    return {of_all};
  kernels::MttkrpArgs args = of_all;
  args.full = false; // a span has entries of some rows
  const i64 nnz = kernels::entries_of(host);
  const auto *sorted = std::get_if<kernels::SortedView>(&host);
  if (sorted != nullptr && sorted->tiles == 1 && args.entries.begin == 0 && args.entries.end == nnz)
    return steps_by_rows(*sorted, args, spans);
  std::vector<kernels::MttkrpArgs> steps;
  for (const Range &span : spans) {
    const Range entries = common(span, args.entries);
    if (entries.size() == 0)
      continue;
    const bool add = args.add || !steps.empty();
    kernels::MttkrpArgs &s = steps.emplace_back(args);
    s.entries = entries;
    s.add = add;
  }
  if (steps.empty())
    steps.push_back(args); // of no entries, which makes zeros
  return steps;
}

SlabStep::SlabStep(const kernels::DenseView &x, const kernels::MttkrpArgs &args, Range entries)
    : dims_(x.dims.begin(), x.dims.end()), factors_(args.factors.begin(), args.factors.end()), args_(args),
      begin_(entries.begin) {
  const Slabs slabs(x);
  const Range last{entries.begin / slabs.elements, entries.end / slabs.elements};
  dims_[slabs.mode] = last.size();
  if (args.mode == static_cast<int>(slabs.mode)) {
    args_.out = args.out.slice(last.begin, last.end);
    const Range rows = common(last, args.rows);
    args_.rows = {rows.begin - last.begin, rows.end - last.begin};
  } else {
    factors_[slabs.mode] = factors_[slabs.mode].slice(last.begin, last.end);
    args_.add = args.add || begin_ > 0;
  }
  args_.factors = factors_;
  args_.entries = {0, entries.size()};
}

kernels::DenseView SlabStep::view(kernels::DenseView x) const { return slabs_from(x, begin_, dims_); }

} // namespace td::tensor
