#include "formats/numbering.hpp"

#include "formats/parts.hpp"

namespace td::formats {

namespace {

// Rows are not worth numbering where they are few beside the entries, or a small part of them is empty.
constexpr i64 long_mode = i64{1} << 16;
constexpr i64 entries_per_row = 8;
constexpr i64 empty_part = 8;

bool may_pay(i64 dim, i64 nnz) { return dim >= long_mode && dim > nnz / entries_per_row; }

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

Numbering::Numbering(const EntriesView &e, EmptyRows empty, int threads) : Numbering(e.dims) {
  for (int m = 0; m < e.order(); ++m) {
    i64 &dim = dims_[static_cast<std::size_t>(m)];
    if (e.nnz == 0 || empty == EmptyRows::keep || !Marks::are_small(dim, e.nnz) ||
        (empty == EmptyRows::few && !may_pay(dim, e.nnz)))
      continue;
    Marks marks = mark_rows(e, m, threads);
    const i64 count = marks.settle();
    if (count == dim || (empty == EmptyRows::few && dim - count < dim / empty_part))
      continue;
    Buffer<i64> rows(count, "nonempty rows");
    marks.for_each(threads, [&](i64 place, i64 row) { rows[place] = row; });
    dim = count;
    modes_[static_cast<std::size_t>(m)] = {std::move(marks), std::move(rows)};
  }
}

bool Numbering::is_index() const noexcept {
  for (const Mode &m : modes_)
    if (m.rows.size() > 0)
      return false;
  return true;
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
