#include "tensor/placement.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "plan/needs.hpp"
#include "tensor/spans.hpp"

namespace td::tensor {

namespace {

using detail::byte_range;
using detail::lists_are_away;
using detail::set_rows_there;
using detail::with_lists;

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
  const bool in_place = kept_ == nullptr && backend.has_own_memory(); // lent
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
  in_order = in_order && backend.has_own_memory();
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
  if (kept_ == nullptr && !backend.has_own_memory())
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
      return detail::origin(kept_->parts[part][number].get(), byte_range(array, span).begin);
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
