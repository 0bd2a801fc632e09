// Rows that hold an entry, numbered without gaps: a tensor of many empty rows is stored and worked on in numbers.
#pragma once

#include <vector>

#include "core/buffer.hpp"
#include "core/entries.hpp"
#include "formats/footprint.hpp"
#include "formats/marks.hpp"
#include "kernels/building.hpp"

namespace td::formats {

/// When rows are numbered.
enum class EmptyRows {
  few,  // in modes that are long, and have many empty rows
  keep, // never: a row's number is its index
  drop, // in every mode that has an empty row and is not far longer than there are entries
};

class Numbering {
public:
  /// A row's number is its index.
  explicit Numbering(std::span<const i64> dims) : dims_(dims.begin(), dims.end()), modes_(dims.size()) {}
  /// Row rows[m][k] has number k, in any order. It has no number().
  explicit Numbering(std::span<const std::span<const i64>> rows);
  /// Numbers the rows of checked entries.
  Numbering(const EntriesView &entries, EmptyRows empty, int threads);
  /// Numbers the rows of checked entries that `building` has begun with.
  Numbering(const EntriesView &entries, EmptyRows empty, kernels::Building &building, int threads);

  /// How many numbers there are in each mode.
  std::span<const i64> dims() const noexcept { return dims_; }
  /// Whether a row's number is its index.
  bool is_index(int mode) const noexcept { return modes_[static_cast<std::size_t>(mode)].rows.size() == 0; }
  bool is_index() const noexcept;

  /// The number of a row that holds an entry.
  i64 number(int mode, i64 row) const noexcept {
    const Mode &m = modes_[static_cast<std::size_t>(mode)];
    if (m.rows.size() == 0)
      return row;
    return m.marks.place(row);
  }
  i64 row(int mode, i64 number) const noexcept {
    const Mode &m = modes_[static_cast<std::size_t>(mode)];
    return m.rows.size() == 0 ? number : m.rows[number];
  }
  /// The rows that hold an entry, mostly ascending (Numbering(rows)); empty where is_index(mode).
  std::span<const i64> rows(int mode) const noexcept {
    const Buffer<i64> &rows = modes_[static_cast<std::size_t>(mode)].rows;
    return {rows.data(), static_cast<std::size_t>(rows.size())};
  }

  /// What number() looks at.
  kernels::RowNumbers numbers(int mode) const noexcept;

  /// Frees what number() needs; number() must not be called afterwards.
  void forget_indices();
  i64 bytes() const noexcept;

private:
  template <class MarkRows> void number_rows(const EntriesView &e, EmptyRows empty, int threads, MarkRows &&mark);

  struct Mode {
    Marks marks;
    Buffer<i64> rows;
  };
  std::vector<i64> dims_;
  std::vector<Mode> modes_;
};

/// Whether rows are looked at to number them; else their numbers are their indices.
bool may_number(std::span<const i64> dims, i64 nnz, EmptyRows empty);

/// What numbering entries that lie so comes to.
struct NumberingSize {
  std::vector<i64> dims;
  Footprint bytes;
};
NumberingSize numbering_size(const EntryShape &x, EmptyRows empty);

} // namespace td::formats
