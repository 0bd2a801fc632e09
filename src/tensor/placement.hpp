// A placement is a stored form as a backend's kernels reach it: some of it is resident in their memory, the rest is
// streamed.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "core/runs.hpp"
#include "kernels/backend.hpp"
#include "kernels/memory_order.hpp"
#include "tensor/stored_form.hpp"

namespace td::tensor {

namespace detail {

using Arrays = std::vector<std::shared_ptr<const void>>;

/// Entries of the longest span.
i64 longest_of(const std::vector<Range> &spans) noexcept;

/// What is kept of one form. Does not change once made.
struct KeptForm {
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
  i64 entry_bytes() const noexcept; // that are kept
  i64 longest() const noexcept { return longest_of(spans); }
  Range held() const noexcept; // entries that are kept, of a form that is not whole
  std::size_t part_with(i64 entry) const noexcept;
  bool holds(Range entries) const noexcept; // in one of the spans
};

/// Buffers through which parts pass: one is filled while the next ones wait and are worked on.
inline constexpr i64 buffers = 3;

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

} // namespace detail

/// How workers gather a form of which the device of each holds a range of entries: what is worked on next comes from
/// all of them. All call the same functions of their placements, also who has no rows to compute.
struct Gather {
  Communicator &others;
  std::vector<Range> held; // [workers] of entries; together each once
  std::vector<Range> rows; // [workers] that they compute
};

/// A form for one backend's kernels, wherever its numbers are. The tensor must outlive it.
class Placement {
public:
  /// The form is in host memory, and so are the kernels that work on it.
  explicit Placement(const StoredForm &stored) : stored_(stored), host_(stored.view(OnHost::all)) {}
  /// The form is lent in the memory of a device, whose kernels work on it where it lies.
  Placement(const StoredForm &stored, const kernels::TensorView &lent) : stored_(stored), host_(lent) {}
  Placement(const StoredForm &stored, std::shared_ptr<const detail::KeptForm> kept)
      : stored_(stored), host_(stored.view(kept->whole ? OnHost::sizes : OnHost::all)), kept_(std::move(kept)) {}

  i64 entries() const { return kernels::entries_of(host_); }
  /// The entries of the form that this may be a part of, and the one with which a range of them begins here.
  i64 all_entries() const { return kernels::entries_of(stored_.whole().view(OnHost::sizes)); }
  i64 first_entry() const { return stored_.selection() == nullptr ? 0 : stored_.selection()->entries.first(); }
  bool streamed() const noexcept { return kept_ != nullptr && !kept_->complete(); }

  /// This is the backend's mttkrp, over what is resident, what is streamed and, with a Gather, what others hold.
  void mttkrp(kernels::Backend &backend, const kernels::MttkrpArgs &args) const;

  /// The backend's mttkrp_slabs, for some slabs of a dense tensor; rows of other slabs are not written. In order it
  /// works on the same ranges of slabs wherever they are.
  void mttkrp_slabs(kernels::Backend &backend, std::span<const ConstMatrix> factors, Matrix out, Range slabs,
                    bool in_order) const;

  /// The backend's unfolding_normal, over ranges of about `most` entries one after the other, the same ones wherever
  /// the entries are. A dense tensor's last mode takes all of them at once.
  void unfolding_normal(kernels::Backend &backend, int mode, ConstMatrix omega, Matrix y, i64 most) const;

  /// Calls work(view, k) for each of some ranges of entries, in order; those of ranges[k] are in the view then. What is
  /// not there is copied meanwhile.
  using Work = std::function<void(const kernels::TensorView &, std::size_t)>;
  void each(kernels::Backend &backend, const std::vector<Range> &ranges, const Work &work) const;

  /// All of it at once, for `work`. Throws Status::device_memory, with numbers, if that is not there.
  FormView whole(const char *work) const;

  /// The elements of a dense tensor get other dims.
  void set_dense_dims(std::span<const i64> dims);
  /// Makes mttkrp and mttkrp_slabs gather spans from all workers; they may be called as long as `gather` lives.
  void set_gather(const Gather &gather) { gather_ = &gather; }

private:
  using Needs = std::function<bool(int worker, std::size_t range)>;
  void mttkrp_gathered(kernels::Backend &backend, const kernels::MttkrpArgs &args) const;
  void each_gathered(kernels::Backend &backend, const std::vector<Range> &ranges, const Needs &needs,
                     const Work &work) const;
  FormView kept_view(Range entries) const;
  std::vector<Range> ordered_spans() const;

  StoredForm stored_;
  kernels::TensorView host_;                     // of what is whole on a device, perhaps with nothing but sizes
  std::shared_ptr<const detail::KeptForm> kept_; // null: all of it is where the kernels work
  const Gather *gather_ = nullptr;
};

} // namespace td::tensor
