// What a device keeps of a stored form, and where the bytes of a form's arrays are.
#pragma once

#include <memory>
#include <vector>

#include "core/runs.hpp"
#include "kernels/memory_order.hpp"
#include "tensor/arrays.hpp"
#include "tensor/selection.hpp"

namespace td::tensor::detail {

using Arrays = std::vector<std::shared_ptr<const void>>;

/// Entries of the longest span.
i64 longest_of(const std::vector<Range> &spans) noexcept;

/// What a device has of one form. Does not change once made.
struct ResidentForm {
  bool whole = false;
  Arrays lists; // of a whole form all arrays; in the order in which a view tells its arrays
  i64 list_bytes = 0;
  i64 whole_bytes = 0; // of the entries of a whole form
  // A form that is not whole has:
  i64 each = 0;              // bytes of an entry
  std::vector<Range> spans;  // one behind the other; not of all entries where each worker holds some
  std::vector<Arrays> parts; // those of the first spans; the others pass through
  Arrays pins;

  bool complete() const noexcept { return whole || parts.size() == spans.size(); }
  i64 entry_bytes() const noexcept; // that are resident
  i64 longest() const noexcept { return longest_of(spans); }
  Range held() const noexcept; // entries that are resident, of a form that is not whole
  std::size_t part_with(i64 entry) const noexcept;
  bool holds(Range entries) const noexcept; // in one of the spans
};

/// Buffers through which parts pass: one is filled while the next ones wait and are worked on.
inline constexpr i64 buffers = 3;

/// Arrays keep how far their elements are from such a border, so that kernels may load several at once.
inline constexpr i64 alignment = 256;

/// The bytes of some entries of an array.
struct ByteRange {
  i64 begin; // where a copy begins: at a border at or before the first entry
  i64 bytes;
};
ByteRange byte_range(const FormArray &array, Range entries);

/// Rows of host memory of so many bytes each, `pitch` bytes apart.
struct HostRows {
  const void *from;
  i64 bytes;
  i64 rows = 1;
  i64 pitch = 0;
};

/// Calls f(offset, rows) for what a range of a lent array's elements comes from: never the gaps between them. Rows of
/// one length that lie evenly come together.
template <class F> void for_lent_sources(const FormArray &array, std::span<const i64> dims, Range elements, F &&f) {
  const kernels::DenseView x{dims, ValueType::f64, nullptr, array.strides};
  const kernels::InMemoryOrder ordered(x);
  const auto strides = kernels::strides_of(ordered.view());
  const char *from = static_cast<const char *>(array.data);
  const bool neighbours = strides[0] == 1; // elements of a run
  HostRows rows{nullptr, 0, 0, 0};
  i64 to = 0; // of these
  i64 at = 0;
  const auto add = [&](const char *begin, i64 bytes) {
    const i64 pitch = rows.rows > 0 ? begin - static_cast<const char *>(rows.from) - (rows.rows - 1) * rows.pitch : 0;
    if (rows.rows > 0 && bytes == rows.bytes && pitch > 0 && (rows.rows == 1 || pitch == rows.pitch)) {
      rows.pitch = pitch;
      ++rows.rows;
    } else {
      if (rows.rows > 0)
        f(to, rows);
      to = at;
      rows = {begin, bytes, 1, 0};
    }
    at += bytes;
  };
  for_each_run(ordered.view().dims, std::span(strides).first(dims.size()), elements, [&](i64, i64 offset, i64 count) {
    for (i64 n = 0; n < (neighbours ? 1 : count); ++n)
      add(from + (offset + n * strides[0]) * array.each, (neighbours ? count : 1) * array.each);
  });
  if (rows.rows > 0)
    f(to, rows);
}

/// Calls f(offset, rows) for the rows of host memory that a range comes from, in order; the offset counts from the
/// range's begin. The form is a part if some of it is selected.
template <class F> void for_sources(const FormArray &array, ByteRange range, const Selection *some, F &&f) {
  const char *from = static_cast<const char *>(array.data);
  const Range elements{range.begin / array.each, (range.begin + range.bytes) / array.each};
  if (!array.entries || (some == nullptr && array.strides.empty()))
    return f(i64{0}, HostRows{from + range.begin, range.bytes});
  if (some == nullptr)
    return for_lent_sources(array, array.dims, elements, f);
  i64 offset = 0;
  some->entries.each(elements, [&](Range entries) {
    if (array.strides.empty())
      f(offset, HostRows{from + entries.begin * array.each, entries.size() * array.each});
    else
      for_lent_sources(array, some->whole_dims, entries,
                       [&](i64 within, const HostRows &rows) { f(offset + within, rows); });
    offset += entries.size() * array.each;
  });
}

/// Where an array would begin whose bytes from `offset` on are at `part`.
inline const void *origin(const void *part, i64 offset) {
  return reinterpret_cast<const void *>(reinterpret_cast<std::uintptr_t>(part) - static_cast<std::uintptr_t>(offset));
}

/// The view of a form whose lists are kept, and whose entry arrays pick(array, number) gives.
template <class Pick> FormView with_lists(const kernels::TensorView &host, const Arrays &lists, Pick pick) {
  FormView x(host);
  std::size_t list = 0;
  std::size_t number = 0;
  x.replace([&](const FormArray &array) -> const void * {
    return array.entries ? pick(array, number++) : lists[list++].get();
  });
  x.set_copied();
  return x;
}

/// Whether a sorted copy's lists of rows are still to come to the host.
bool lists_are_away(const kernels::TensorView &host);

/// Where all entries are there, that spares a search, and is not worth bringing lists to the host.
void set_rows_there(FormView &x, const kernels::TensorView &host, Range entries);

} // namespace td::tensor::detail
