#include "formats/numbering.hpp"

#include <algorithm>
#include <cmath>

#include "formats/parts.hpp"

namespace td::formats {

namespace {

// Rows are not worth numbering where they are few beside the entries, or a small part of them is empty.
constexpr i64 long_mode = i64{1} << 16;
constexpr i64 entries_per_row = 8;
constexpr i64 empty_part = 8;

bool may_pay(i64 dim, i64 nnz) { return dim >= long_mode && dim > nnz / entries_per_row; }

/// Whether a mode's rows are looked at.
bool is_tried(i64 dim, i64 nnz, EmptyRows empty) {
  return nnz > 0 && empty != EmptyRows::keep && Marks::are_small(dim, nnz) &&
         (empty == EmptyRows::drop || may_pay(dim, nnz));
}

/// Whether rows are numbered if `count` of them hold entries.
bool is_numbered(i64 dim, i64 count, EmptyRows empty) {
  return count < dim && (empty == EmptyRows::drop || dim - count >= dim / empty_part);
}

Marks mark_rows(const EntriesView &e, int mode, int threads) {
  Marks marks(e.dims[static_cast<std::size_t>(mode)]);
  dispatch(e.index_type, [&](auto zero) {
    const auto *index = static_cast<const decltype(zero) *>(e.indices[mode]);
    parallel_ranges(threads, e.nnz, grain, [&](Range r) {
      for (i64 k = r.begin; k < r.end; ++k)
        marks.add(static_cast<i64>(index[k]) - e.index_base);
    });
  });
  return marks;
}

} // namespace

Numbering::Numbering(std::span<const std::span<const i64>> rows) : modes_(rows.size()) {
  for (std::size_t m = 0; m < rows.size(); ++m) {
    dims_.push_back(std::ssize(rows[m]));
    modes_[m].rows = Buffer<i64>(dims_.back(), "rows that are held");
    std::copy(rows[m].begin(), rows[m].end(), modes_[m].rows.begin());
  }
}

Numbering::Numbering(const EntriesView &e, EmptyRows empty, int threads) : Numbering(e.dims) {
  number_rows(e, empty, threads, [&](int mode) { return mark_rows(e, mode, threads); });
}

Numbering::Numbering(const EntriesView &e, EmptyRows empty, kernels::Building &building, int threads)
    : Numbering(e.dims) {
  number_rows(e, empty, threads, [&](int mode) {
    Marks marks(e.dims[static_cast<std::size_t>(mode)]);
    building.mark_rows(mode, marks.words().data());
    return marks;
  });
}

template <class MarkRows>
void Numbering::number_rows(const EntriesView &e, EmptyRows empty, int threads, MarkRows &&mark) {
  for (int m = 0; m < e.order(); ++m) {
    i64 &dim = dims_[static_cast<std::size_t>(m)];
    if (!is_tried(dim, e.nnz, empty))
      continue;
    Marks marks = mark(m);
    const i64 count = marks.settle();
    if (!is_numbered(dim, count, empty))
      continue;
    Buffer<i64> rows(count, "nonempty rows");
    marks.for_each(threads, [&](i64 place, i64 row) { rows[place] = row; });
    dim = count;
    modes_[static_cast<std::size_t>(m)] = {std::move(marks), std::move(rows)};
  }
}

bool may_number(std::span<const i64> dims, i64 nnz, EmptyRows empty) {
  return std::any_of(dims.begin(), dims.end(), [&](i64 dim) { return is_tried(dim, nnz, empty); });
}

NumberingSize numbering_size(const EntryShape &x, EmptyRows empty) {
  NumberingSize size{{x.dims.begin(), x.dims.end()}, {}};
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    if (!is_tried(x.dims[m], x.nnz, empty))
      continue;
    std::vector<int> dropped(x.dims.size(), all_bits);
    dropped[m] = 0;
    const i64 count = std::max<i64>(1, static_cast<i64>(std::llround(x.combinations(dropped))));
    if (!is_numbered(x.dims[m], count, empty))
      continue;
    size.dims[m] = count;
    size.bytes.stored += 8 * static_cast<double>(count);
    size.bytes.building += Marks::bytes_for(x.dims[m]); // until entries have their numbers
  }
  return size;
}

bool Numbering::is_index() const noexcept {
  for (const Mode &m : modes_)
    if (m.rows.size() > 0)
      return false;
  return true;
}

kernels::RowNumbers Numbering::numbers(int mode) const noexcept {
  if (is_index(mode))
    return {};
  const Marks &marks = modes_[static_cast<std::size_t>(mode)].marks;
  return {marks.words().data(), marks.before().data(), marks.words().size()};
}

void Numbering::forget_indices() {
  for (Mode &m : modes_) {
    m.marks = {};
  }
}

i64 Numbering::bytes() const noexcept {
  i64 total = 0;
  for (const Mode &m : modes_)
    total += m.marks.bytes() + m.rows.bytes();
  return total;
}

} // namespace td::formats
