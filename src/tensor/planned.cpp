#include "tensor/planned.hpp"

#include <algorithm>
#include <cmath>

#include "tensor/entry_partition.hpp"
#include "tensor/sharding.hpp"
#include "tensor/whole.hpp"

namespace td::tensor {

plan::Layout layout_of(const Tensor &x, const plan::PlanRequest &request) {
  plan::Existing existing{x.dims(),   x.stored_dims(),      x.stored_entries(), x.facts().duplicates, x.type(),
                          x.sparse(), x.format(),           x.reasons(),        x.groups(),           {},
                          x.bytes(),  x.numbering().bytes()};
  if (x.borrowed()) {
    existing.lent_bytes = static_cast<double>(x.facts().nnz) * static_cast<double>(size_of(x.type()));
    existing.in_place = !is_gpu(request) || x.borrowed_in() != nullptr;
    existing.strides = existing.in_place ? x.dense()->strides : kernels::copied_strides(x.dense()->view());
  }
  existing.shared.processes = request.processes;
  existing.shared.sharing = request.sharing;
  if (const Distribution *d = x.distribution()) {
    existing.shared.processes = d->processes().size();
    existing.shared.having_blocks = d->processes().processes();
    existing.shared.entries = x.facts().nnz;
    for (int m = 0; m < x.order(); ++m) {
      existing.shared.lent.push_back(d->lent(m));
      existing.shared.shared.push_back(d->shared(m));
      existing.shared.partners.push_back(d->partners(m));
    }
  }
  const int forms = x.format() == plan::Format::sorted ? x.groups().count() : 1;
  for (int number = 0; number < forms; ++number)
    existing.forms.push_back(x.merged_view(number, OnHost::sizes));
  return layout_of(existing, threads_of(request));
}

namespace {

/// A run for which each process gets all of a tensor, which stays what it is besides.
plan::Plan plan_of_whole(const Tensor &x, const plan::PlanRequest &request) {
  const plan::TensorSettings settings = settings_of_whole(x);
  const int sharing = x.processes()->workers_here();
  plan::PlanRequest together = request; // it is made with the memory of all of them
  together.options.set("memory_limit", sharing * request.options.integer("memory_limit"));
  const plan::StorageRequest storage = storage_request(together, settings);
  plan::Layout layout = x.sparse() ? plan::layout_of(x.dims(), x.facts().nnz, x.type(), storage)
                                   : plan::dense_layout(x.dims(), x.type(), storage);
  layout.shared.processes = x.processes()->size();
  layout.shared.having_blocks = x.processes()->processes();
  layout.shared.sharing = sharing;
  layout.besides = static_cast<double>(x.bytes());
  layout.bytes.building += plan::whole_bytes(x.facts().nnz, x.order(), x.type(), x.sparse());
  return plan_of({std::move(layout), settings, {}, {}}, request);
}

i64 most_resident(const Tensor &x, const plan::PlanRequest &request) {
  i64 most = 0;
  for (const auto &backend : request.backends)
    most = std::max(most, x.resident_bytes_on(*backend));
  return most;
}

} // namespace

plan::Plan plan_of(const Tensor &x, const plan::PlanRequest &request) {
  plan::require_rank(request.rank);
  if (x.distribution() != nullptr && plan::SolverSettings(request.options).deterministic)
    return plan_of_whole(x, request);
  plan::Stored stored{layout_of(x, request), x.settings(), {}, {}};
  for (const auto &backend : request.backends)
    stored.resident.push_back(x.resident_bytes_on(*backend));
  const Sharding sharding(x, static_cast<int>(request.backends.size()),
                          plan::SolverSettings(request.options).deterministic);
  for (int mode = 0; mode < x.order(); ++mode) {
    const int group = x.groups().group_of(mode);
    const bool shared = stored.layout.partition[stored.layout.group_of(mode)].shared;
    stored.partitions.push_back(shared ? sharding.cells(group) : sharding.rows(mode));
  }
  return plan_of(std::move(stored), request);
}

namespace {

/// Rows that entries touch are counted by process, and owners are taken to have equally many.
plan::ProcessPart part_of(const EntriesView &e, int processes, int threads) {
  plan::ProcessPart part{processes, static_cast<double>(e.nnz), {}, {}, {}};
  const Buffer<std::int32_t> process_of = partition_entries(processes, e, threads);
  struct Touch {
    i64 row;
    std::int32_t process;
    auto operator<=>(const Touch &) const = default;
  };
  for (int m = 0; m < e.order(); ++m) {
    std::vector<Touch> touches(static_cast<std::size_t>(e.nnz));
    dispatch(e.index_type, [&](auto zero) {
      const auto *column = static_cast<const decltype(zero) *>(e.indices[m]);
      for (i64 k = 0; k < e.nnz; ++k)
        touches[static_cast<std::size_t>(k)] = {static_cast<i64>(column[k]), process_of[k]};
    });
    std::sort(touches.begin(), touches.end());
    const auto held = std::unique(touches.begin(), touches.end()) - touches.begin();
    const auto rows = std::unique(touches.begin(), touches.begin() + held,
                                  [](const Touch &a, const Touch &b) { return a.row == b.row; }) -
                      touches.begin();
    part.rows.push_back(static_cast<double>(held) / processes);
    part.lent.push_back(static_cast<double>(held - rows) / processes);
    part.partners.push_back(std::min(processes - 1.0, std::ceil(part.lent.back())));
  }
  return part;
}

} // namespace

plan::Plan plan_of_processes(const EntriesView &entries, const plan::PlanRequest &request) {
  return plan_of(entries.dims, part_of(entries, processes_of(request), threads_of(request)), entries.value_type,
                 request);
}

plan::SweepTree require_solver(const Tensor &x, const plan::PlanRequest &request, bool checkpoint) {
  plan::require_rank(request.rank);
  return require_solver(layout_of(x, request), x.settings(), request, checkpoint, most_resident(x, request));
}

void require_mttkrp(const Tensor &x, const plan::PlanRequest &request, int mode) {
  const auto rank = static_cast<double>(request.rank);
  const double row = rank * static_cast<double>(size_of(x.type()));
  const auto workers = static_cast<double>(request.backends.size());
  double rows = 0;
  for (const i64 dim : x.stored_dims())
    rows += static_cast<double>(dim);
  MemoryNeed need;
  const MemoryBudget budget(request.options, x.bytes());
  if (x.distribution() != nullptr) // copies of the result on the process that gathers it, once for its workers
    need.add("the rows of all processes", static_cast<double>(x.dims()[static_cast<std::size_t>(mode)]) *
                                              ((is_gpu(request) ? 3 : 2) * row + 16) / x.processes()->workers_here());
  if (!is_gpu(request)) {
    need.add("the factors at work", workers * rows * row);
    need.add("the result of MTTKRP",
             workers * static_cast<double>(x.stored_dims()[static_cast<std::size_t>(mode)]) * row);
    const int group = x.groups().group_of(mode);
    const auto partial = plan::product_by_itself(x.stored_dims(), x.settings().groups, mode);
    if (x.sparse() && x.groups().shared(group))
      need.add("partial products", workers * static_cast<double>(x.groups().cell_count(group)) * row);
    if (!x.sparse() && partial)
      need.add("partial products", workers * static_cast<double>(partial->cells) * row);
    // The workspace of kernels is small beside the tensor where this is small.
    if (request.rank > 0 && (budget.limit() > 0 || budget.concerns(need.total()))) {
      const plan::Layout layout = layout_of(x, request);
      need.add("sums on their way", workers * mttkrp_workspace(layout, x.settings(), request, mode));
    }
  }
  budget.require(fmt::format("MTTKRP of rank {} in mode {}", request.rank, mode), need, "a smaller rank needs less");
}

} // namespace td::tensor
