#include "tensor/placement.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "plan/needs.hpp"
#include "tensor/spans.hpp"

namespace td::tensor {

namespace {

/// Arrays keep how far their elements are from such a border, so that kernels may load several at once.
constexpr i64 alignment = 256;

} // namespace

namespace detail {

ByteRange byte_range(const FormArray &array, Range entries) {
  const i64 begin = entries.begin * array.each / alignment * alignment;
  return {begin, entries.end * array.each - begin};
}

i64 KeptForm::entry_bytes() const noexcept { return whole ? whole_bytes : held().size() * each; }

i64 longest_of(const std::vector<Range> &spans) noexcept {
  i64 most = 0;
  for (const Range &span : spans)
    most = std::max(most, span.size());
  return most;
}

Range KeptForm::held() const noexcept {
  return parts.empty() ? Range{} : Range{spans.front().begin, spans[parts.size() - 1].end};
}

std::size_t KeptForm::part_with(i64 entry) const noexcept {
  const auto next =
      std::upper_bound(spans.begin(), spans.end(), entry, [](i64 k, const Range &span) { return k < span.begin; });
  return static_cast<std::size_t>(next - spans.begin()) - 1;
}

bool KeptForm::holds(Range entries) const noexcept {
  const Range there = held();
  return whole || (there.begin <= entries.begin && entries.begin < there.end &&
                   entries.end <= spans[part_with(entries.begin)].end);
}

} // namespace detail

namespace {

using detail::Arrays;
using detail::byte_range;
using detail::ByteRange;

/// Where an array would begin whose bytes from `offset` on are at `part`.
const void *origin(const void *part, i64 offset) {
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
bool lists_are_away(const kernels::TensorView &host) {
  const auto *sorted = std::get_if<kernels::SortedView>(&host);
  return sorted != nullptr && sorted->nnz > 0 && sorted->row_begin == nullptr;
}

/// Where all entries are there, that spares a search, and is not worth bringing lists to the host.
void set_rows_there(FormView &x, const kernels::TensorView &host, Range entries) {
  if (const auto *sorted = std::get_if<kernels::SortedView>(&host); sorted != nullptr && !lists_are_away(host))
    x.set_rows_there(rows_with(*sorted, entries));
}

/// A range of entries that passes through a buffer; `gathered` from all workers, else one brings it by itself.
struct Passing {
  Range entries;
  bool gathered = false;
};

/// The matrix whose rows are numbers of so many bytes.
Matrix column_of(void *data, i64 count, i64 bytes) {
  return {data, bytes == size_of(ValueType::f32) ? ValueType::f32 : ValueType::f64, count, 1, 1};
}

/// Buffers through which ranges of a form's entries pass. With a Gather a worker brings what it holds: what is resident
/// from there, the rest from the host.
class StreamBuffers {
public:
  StreamBuffers(kernels::Backend &backend, const kernels::TensorView &host, const Selection *some,
                const detail::KeptForm &kept, const std::vector<Passing> &ranges, const Gather *gather)
      : backend_(backend), host_(host), some_(some), kept_(kept), ranges_(ranges), gather_(gather) {
    bool fetches = false;
    for (const Passing &range : ranges)
      fetches = fetches || missing_of(range).size() > 0;
    i64 bytes = 0;
    for (const FormArray &array : FormView(host).arrays()) {
      if (!array.entries)
        continue;
      arrays_.push_back(array);
      i64 most = 0;
      for (const Passing &range : ranges)
        most = std::max(most, byte_range(array, range.entries).bytes);
      places_.push_back(bytes);
      bytes += (most + alignment - 1) / alignment * alignment;
    }
    const auto count = std::min(static_cast<std::size_t>(fetches ? detail::buffers : 1), ranges.size());
    for (std::size_t b = 0; b < count; ++b) {
      memory_.emplace_back(backend, bytes, "a part of a streamed tensor on its way");
      backend.done(static_cast<int>(b));
    }
  }

  StreamBuffers(const StreamBuffers &) = delete;
  StreamBuffers &operator=(const StreamBuffers &) = delete;
  ~StreamBuffers() { // buffers go only when nothing is copied to them any more
    for (; taken_ < fetched_; ++taken_)
      backend_.await(static_cast<int>(taken_ % memory_.size()));
  }

  void start() {
    for (std::size_t b = 0; b < memory_.size(); ++b)
      fetch_next();
  }

  /// The next range, as soon as it is there.
  FormView take() {
    const std::size_t buffer = taken_ % memory_.size();
    {
      const kernels::InPhase phase(backend_, kernels::Phase::host_copies);
      backend_.await(static_cast<int>(buffer));
    }
    const Range range = ranges_[taken_].entries;
    if (gather_ != nullptr)
      complete(ranges_[taken_]);
    FormView x = with_lists(host_, kept_.lists, [&](const FormArray &array, std::size_t number) {
      return origin(place_of(number, range, range.begin), range.begin * array.each);
    });
    set_rows_there(x, host_, range);
    return x;
  }
  void give_back() {
    backend_.done(static_cast<int>(taken_++ % memory_.size()));
    fetch_next();
  }

private:
  /// What of a range this worker brings, and of that what comes from the host.
  Range own_of(const Passing &range) const {
    return range.gathered ? common(range.entries, gather_->held[static_cast<std::size_t>(gather_->others.rank())])
                          : range.entries;
  }
  Range missing_of(const Passing &range) const {
    const Range own = own_of(range);
    const i64 resident = gather_ == nullptr ? own.begin : common(own, kept_.held()).end;
    return {std::max(own.begin, resident), own.end};
  }

  /// Where an array's element is in the buffer of a range that it belongs to.
  char *place_of(std::size_t number, Range range, i64 entry) {
    const FormArray &array = arrays_[number];
    return static_cast<char *>(memory_[taken_ % memory_.size()].data()) + places_[number] + entry * array.each -
           byte_range(array, range).begin;
  }

  /// Adds what is resident, and what others hold, to what was fetched.
  void complete(const Passing &range) {
    const Range resident = common(own_of(range), kept_.held());
    for (i64 begin = resident.begin; begin < resident.end;) {
      const std::size_t part = kept_.part_with(begin);
      const Range span = kept_.spans[part];
      const i64 end = std::min(resident.end, span.end);
      for (std::size_t number = 0; number < arrays_.size(); ++number) {
        const FormArray &array = arrays_[number];
        const char *const from = static_cast<const char *>(kept_.parts[part][number].get()) + begin * array.each -
                                 byte_range(array, span).begin;
        backend_.copy_from(backend_, place_of(number, range.entries, begin), from, (end - begin) * array.each);
      }
      begin = end;
    }
    if (!range.gathered)
      return;
    std::vector<Ranges> owned;
    for (const Range &held : gather_->held) {
      const Range theirs = common(range.entries, held);
      owned.emplace_back();
      if (theirs.size() > 0)
        owned.back().push_back({theirs.begin - range.entries.begin, theirs.end - range.entries.begin});
    }
    for (std::size_t number = 0; number < arrays_.size(); ++number)
      gather_->others.allgather_rows(
          column_of(place_of(number, range.entries, range.entries.begin), range.entries.size(), arrays_[number].each),
          owned);
  }

  void fetch_next() {
    if (fetched_ == ranges_.size())
      return;
    const std::size_t buffer = fetched_ % memory_.size();
    const Range missing = missing_of(ranges_[fetched_]);
    for (std::size_t number = 0; number < arrays_.size() && missing.size() > 0; ++number) {
      const FormArray &array = arrays_[number];
      const ByteRange bytes = byte_range(array, missing);
      char *const to = static_cast<char *>(memory_[buffer].data()) + places_[number] + bytes.begin -
                       byte_range(array, ranges_[fetched_].entries).begin;
      detail::for_sources(array, bytes, some_, [&](i64 offset, const detail::HostRows &from) {
        if (from.rows == 1)
          backend_.fetch(static_cast<int>(buffer), to + offset, from.from, from.bytes);
        else
          backend_.fetch_rows(static_cast<int>(buffer), to + offset, from.from, from.bytes, from.rows, from.pitch);
      });
    }
    ++fetched_;
  }

  kernels::Backend &backend_;
  const kernels::TensorView &host_;
  const Selection *some_;
  const detail::KeptForm &kept_;
  const std::vector<Passing> &ranges_;
  const Gather *gather_;
  std::vector<FormArray> arrays_; // of entries
  std::vector<i64> places_;       // of these in a buffer
  std::vector<kernels::DeviceBuffer> memory_;
  std::size_t fetched_ = 0;
  std::size_t taken_ = 0;
};

std::vector<Range> entries_of(std::span<const kernels::MttkrpArgs> steps) {
  std::vector<Range> entries;
  for (const kernels::MttkrpArgs &step : steps)
    entries.push_back(step.entries);
  return entries;
}

} // namespace

void Placement::mttkrp(kernels::Backend &backend, const kernels::MttkrpArgs &args) const {
  if (gather_ != nullptr)
    return mttkrp_gathered(backend, args);
  const bool in_order = args.conflicts == kernels::Conflicts::owner;
  const bool by_span = in_order && all_entries() > plan::span_entries(all_entries());
  const bool in_place = kept_ == nullptr && backend.memory() != nullptr; // lent
  if ((kept_ == nullptr && !in_place) || ((in_place || kept_->whole) && !by_span)) {
    backend.mttkrp(whole("MTTKRP").view(), args);
    return;
  }
  if (lists_are_away(host_))
    return Placement(stored_.view(OnHost::lists), kept_).mttkrp(backend, args);
  const auto spans = in_order ? ordered_spans() : kept_->spans; // of what is lent, in order only
  if (const auto *dense = std::get_if<kernels::DenseView>(&host_)) {
    each(backend, spans, [&](const kernels::TensorView &x, std::size_t k) {
      const SlabStep step(*dense, args, spans[k]);
      if (step.args().rows.size() > 0)
        backend.mttkrp(step.view(std::get<kernels::DenseView>(x)), step.args());
    });
    return;
  }
  const auto steps = steps_of(host_, args, spans);
  each(backend, entries_of(steps), [&](const kernels::TensorView &x, std::size_t k) { backend.mttkrp(x, steps[k]); });
}

// Spans are those of the whole form, as one worker alone has them. Of slabs whose own rows are computed each worker
// needs its own.
void Placement::mttkrp_gathered(kernels::Backend &backend, const kernels::MttkrpArgs &args) const {
  const auto rows_of = [&](int worker) { return gather_->rows[static_cast<std::size_t>(worker)]; };
  const auto spans = ordered_spans();
  if (const auto *dense = std::get_if<kernels::DenseView>(&host_)) {
    const auto step_of = [&](std::size_t k, Range rows) {
      kernels::MttkrpArgs some = args;
      some.rows = rows;
      return SlabStep(*dense, some, spans[k]).args().rows.size() > 0;
    };
    each_gathered(
        backend, spans, [&](int worker, std::size_t k) { return step_of(k, rows_of(worker)); },
        [&](const kernels::TensorView &x, std::size_t k) {
          const SlabStep step(*dense, args, spans[k]);
          backend.mttkrp(step.view(std::get<kernels::DenseView>(x)), step.args());
        });
    return;
  }
  const auto steps = steps_of(host_, args, spans);
  each_gathered(
      backend, entries_of(steps), [&](int worker, std::size_t) { return rows_of(worker).size() > 0; },
      [&](const kernels::TensorView &x, std::size_t k) { backend.mttkrp(x, steps[k]); });
}

void Placement::mttkrp_slabs(kernels::Backend &backend, std::span<const ConstMatrix> factors, Matrix out, Range slabs,
                             bool in_order) const {
  const std::span<const i64> dims = std::get<kernels::DenseView>(host_).dims;
  const i64 elements = entries() / dims.back(); // of a slab
  const auto compute = [&](const kernels::TensorView &x, Range some) {
    const Range those{std::max(some.begin / elements, slabs.begin), std::min(some.end / elements, slabs.end)};
    if (those.begin >= those.end)
      return;
    const Slice slice(x, {those.begin * elements, those.end * elements});
    backend.mttkrp_slabs(std::get<kernels::DenseView>(slice.view()), factors,
                         out.slice(those.begin * dims.front(), those.end * dims.front()));
  };
  in_order = in_order && backend.memory() != nullptr;
  if (!in_order && (kept_ == nullptr || kept_->whole))
    return compute(whole("MTTKRP").view(), {0, entries()});
  const auto spans = in_order ? ordered_spans() : kept_->spans;
  const auto work = [&](const kernels::TensorView &x, std::size_t k) { compute(x, spans[k]); };
  if (gather_ != nullptr)
    each_gathered(
        backend, spans, [](int, std::size_t) { return true; }, work);
  else
    each(backend, spans, work);
}

// A part has what it holds of the whole form's spans, so that no sum depends on how a tensor is partitioned.
std::vector<Range> Placement::ordered_spans() const {
  const i64 most = plan::span_entries(all_entries());
  if (stored_.selection() == nullptr)
    return spans_of(host_, most);
  std::vector<Range> spans;
  for (const Range &span : spans_of(stored_.whole().view(OnHost::lists), most))
    if (const Range mine = stored_.selection()->entries.within(span); mine.size() > 0)
      spans.push_back(mine);
  return spans;
}

void Placement::unfolding_normal(kernels::Backend &backend, int mode, ConstMatrix omega, Matrix y, i64 most) const {
  if (kept_ == nullptr && backend.memory() == nullptr)
    return backend.unfolding_normal(host_, mode, omega, y, false);
  const auto spans = fiber_spans(host_, mode, most);
  each(backend, spans, [&](const kernels::TensorView &x, std::size_t k) {
    backend.unfolding_normal(Slice(x, spans[k]).view(), mode, omega, y, k > 0);
  });
}

void Placement::each(kernels::Backend &backend, const std::vector<Range> &ranges, const Work &work) const {
  std::vector<bool> here;
  std::vector<Passing> streamed;
  for (const Range &range : ranges) {
    here.push_back(kept_ == nullptr || range.size() == 0 || kept_->holds(range));
    if (!here.back())
      streamed.push_back({range});
  }
  std::optional<StreamBuffers> buffers;
  if (!streamed.empty()) {
    buffers.emplace(backend, host_, stored_.selection(), *kept_, streamed, nullptr);
    buffers->start();
  }
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    if (here[k]) {
      work(kept_view(ranges[k]).view(), k);
      continue;
    }
    work(buffers->take().view(), k);
    buffers->give_back();
  }
}

// Each worker finds the same ranges to gather, in the same order. One that somebody needs who does not hold all of it
// goes to all.
void Placement::each_gathered(kernels::Backend &backend, const std::vector<Range> &ranges, const Needs &needs,
                              const Work &work) const {
  const Gather &gather = *gather_;
  const int own = gather.others.rank();
  std::vector<bool> passes, needed;
  std::vector<Passing> passing;
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    bool gathered = false;
    for (int worker = 0; worker < gather.others.size(); ++worker)
      gathered =
          gathered || (common(ranges[k], gather.held[static_cast<std::size_t>(worker)]).size() < ranges[k].size() &&
                       needs(worker, k));
    needed.push_back(needs(own, k));
    passes.push_back(gathered || (needed[k] && ranges[k].size() > 0 && !kept_->holds(ranges[k])));
    if (passes[k])
      passing.push_back({ranges[k], gathered});
  }
  std::optional<StreamBuffers> buffers;
  if (!passing.empty()) {
    buffers.emplace(backend, host_, nullptr, *kept_, passing, gather_);
    buffers->start();
  }
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    if (!passes[k]) {
      if (needed[k])
        work(kept_view(ranges[k]).view(), k);
      continue;
    }
    const FormView x = buffers->take();
    if (needed[k])
      work(x.view(), k);
    buffers->give_back();
  }
}

FormView Placement::whole(const char *work) const {
  if (kept_ != nullptr && !kept_->whole) {
    const FormBytes bytes = bytes_of(host_);
    throw_error(Status::device_memory,
                "out of device memory: {} works on all of a copy at once, which takes {} bytes on the GPU; option "
                "'device_memory_limit' or what is free there leaves less",
                work, bytes.entries + bytes.lists);
  }
  return kept_view({0, entries()});
}

FormView Placement::kept_view(Range entries) const {
  FormView x(host_);
  if (kept_ == nullptr)
    return x;
  if (kept_->whole) {
    std::size_t next = 0;
    x.replace([&](const FormArray &) { return kept_->lists[next++].get(); });
    x.set_copied();
  } else if (entries.size() == 0) {
    x = with_lists(host_, kept_->lists, [](const FormArray &array, std::size_t) { return array.data; });
  } else {
    const std::size_t part = kept_->part_with(entries.begin);
    const Range span = kept_->spans[part];
    x = with_lists(host_, kept_->lists, [&](const FormArray &array, std::size_t number) {
      return origin(kept_->parts[part][number].get(), byte_range(array, span).begin);
    });
  }
  if (entries.size() < this->entries())
    set_rows_there(x, host_, entries);
  return x;
}

void Placement::set_dense_dims(std::span<const i64> dims) {
  if (auto *dense = std::get_if<kernels::DenseView>(&host_))
    dense->dims = dims;
}

} // namespace td::tensor
