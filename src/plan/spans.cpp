#include "plan/spans.hpp"

#include <algorithm>

namespace td::plan {

namespace {

Range common(Range a, Range b) {
  const i64 begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// The row (or piece) that holds an entry; `rows` for the end of all.
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

/// Of rows that are whole in the copy: each span has rows of its own, and zeros go to those without entries.
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

} // namespace

i64 span_entries(i64 nnz) { return std::clamp<i64>(nnz / 16, i64{1} << 20, i64{1} << 22); }

std::vector<Range> spans_of(const kernels::TensorView &host, i64 most) {
  const i64 nnz = kernels::entries_of(host);
  std::vector<Range> spans;
  if (const auto *dense = std::get_if<kernels::DenseView>(&host)) {
    const i64 slab = nnz / dense->dims.back();
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

Range rows_with(const kernels::SortedView &host, Range entries) {
  if (entries.size() == 0)
    return {};
  return {row_holding(host, entries.begin), row_holding(host, entries.end - 1) + 1};
}

std::vector<kernels::MttkrpArgs> steps_of(const kernels::TensorView &host, const kernels::MttkrpArgs &args,
                                          const std::vector<Range> &spans) {
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
  const i64 slab = kernels::entries_of(x) / dims_.back();
  const Range last{entries.begin / slab, entries.end / slab};
  dims_.back() = last.size();
  if (args.mode == static_cast<int>(dims_.size()) - 1) {
    args_.out = args.out.slice(last.begin, last.end);
    const Range rows = common(last, args.rows);
    args_.rows = {rows.begin - last.begin, rows.end - last.begin};
  } else {
    factors_.back() = factors_.back().slice(last.begin, last.end);
    args_.add = args.add || begin_ > 0;
  }
  args_.factors = factors_;
  args_.entries = {0, entries.size()};
}

kernels::DenseView SlabStep::view(kernels::DenseView x) const {
  x.dims = dims_;
  x.values = reinterpret_cast<const void *>(reinterpret_cast<std::uintptr_t>(x.values) +
                                            static_cast<std::uintptr_t>(begin_ * size_of(x.type)));
  return x;
}

} // namespace td::plan
