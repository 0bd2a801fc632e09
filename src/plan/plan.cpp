#include "plan/plan.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "plan/devices.hpp"
#include "plan/exchange.hpp"
#include "plan/solver_sizes.hpp"

namespace td::plan {

namespace {

constexpr int most_processes = 65536; // of option "processes"

/// How workers would divide a mode if entries were spread evenly.
Partition even_partition(const Layout &l, std::size_t mode, int workers, ShardingRule rule) {
  const bool by_rows = l.format == Format::sorted && !l.partition[l.group_of(static_cast<int>(mode))].shared;
  if (!by_rows || workers == 1)
    return partition_evenly(l.stored_dims[mode], l.nnz, workers);
  const EvenRows counts(l.stored_dims[mode], l.nnz);
  return rule == ShardingRule::entries ? partition_entries(counts, workers)
                                       : partition_rows(counts, workers, rule == ShardingRule::automatic);
}

/// How many workers there are, of all processes, of which each has all of the tensor or a part by rows.
int workers_of(const Layout &l, const PlanRequest &request) {
  return l.is_whole_on_each() ? l.shared.processes : static_cast<int>(request.backends.size());
}

/// `partitions`: of a tensor that there is.
void set_loads(Plan &plan, const std::vector<Partition> &partitions, const Asked &asked, Holding holding, int workers) {
  const Layout &l = plan.layout;
  const ShardingRule rule = asked.tensor.sharding;
  const bool deterministic = asked.solver.deterministic;
  const bool all = stands_by_rows(l.format) ? holding == Holding::gathered && computes_all_rows(l.format, deterministic)
                                            : needs_all_entries(workers, rule, deterministic);
  for (std::size_t m = 0; m < plan.modes.size(); ++m) {
    const Partition partition = partitions.empty()
                                    ? even_partition(l, m, plan.workers, deterministic ? ShardingRule::rows : rule)
                                    : partitions[m];
    ModePlan &mode = plan.modes[m];
    mode.load.assign(partition.load.begin(), partition.load.end());
    if (all) // each looks at all for its rows, or sums all
      std::fill(mode.load.begin(), mode.load.end(), static_cast<double>(l.nnz));
    mode.split_rows = static_cast<i64>(partition.split.size());
    mode.imbalance = partition.imbalance();
    mode.unsplit = partition.imbalance_unsplit();
  }
  plan.sharding = sharding_choice(l.format, rule, deterministic, workers, holding);
}

/// Machines of processes that a plan counts with are others, whose memory this one's says nothing of.
HostMemory memory_of(const PlanRequest &request, i64 held) {
  const i64 limit = request.options.integer("memory_limit");
  if (processes_of(request) > 1 && limit > 0)
    return {limit, true};
  return host_memory(request.options, held);
}

kernels::Rates rates_for(Plan &plan, const PlanRequest &request) {
  const double read = request.options.real("read_rate");
  const double operations = request.options.real("operation_rate");
  kernels::Rates rates;
  if (read == 0 || operations == 0)
    rates = request.backends.front()->rates();
  plan.rates_why =
      read == 0 && operations == 0 ? "measured now, once a process" : "measured, but for what options give";
  if (rates.read == 0)
    plan.rates_why = "not known: the backend does not measure, or too little memory is free to measure with";
  if (read > 0)
    rates.read = rates.near_rows = rates.middle_rows = rates.far_rows = read;
  if (operations > 0)
    rates.operations = operations;
  if (read > 0 && operations > 0)
    plan.rates_why = "given by options 'read_rate' and 'operation_rate'";
  return rates;
}

SweepPrediction sweep_of(const Layout &l, const SweepTree &tree, const PlanRequest &request, const Asked &asked,
                         const kernels::Rates &rates) {
  return predict_sweep(l, {*request.backends.front(), request.rank, workers_of(l, request), asked.tensor.conflicts,
                           asked.tensor.sharding, asked.solver.deterministic, asked.tensor.precision(l.type), rates,
                           asked.tensor.dense, &tree});
}

SweepTree tree_by(GroupsSetting groups, double most_bytes, const Layout &l, const PlanRequest &request) {
  return SweepTree({l.stored_dims, l.type, request.rank, std::move(groups),
                    UpdateOrder(request.options, static_cast<int>(l.dims.size())).updated_modes,
                    request.backends.front().get(), most_bytes});
}

/// Bytes that a partial product may take at most, wherever the tensor lies.
double quarter_of(const Layout &l) { return (l.bytes.stored + l.lent_bytes) / 4; }

/// Bytes that a partial product may take on a device that holds `resident_now` bytes of the tensor: a quarter of the
/// tensor where it fits besides, and where the tensor is streamed little of the room that it leaves less of. In order
/// the choice may not depend on how many devices there are.
double most_on_device(const Layout &l, const PlanRequest &request, const Asked &asked, i64 resident_now) {
  const bool slabs = takes_slabs(l.slabs(), static_cast<int>(request.backends.size()), asked.tensor.sharding,
                                 asked.solver.deterministic);
  const double workers = slabs ? static_cast<double>(request.backends.size()) : 1;
  const auto room = static_cast<double>(request.backends.front()->room() + resident_now);
  const double quarter = quarter_of(l);
  const double resident = l.in_place ? 0 : 4 * quarter / workers;
  return resident + quarter <= room ? quarter : std::min(quarter, room / 16);
}

SweepTree tree_of(const Layout &l, const PlanRequest &request, const Asked &asked, i64 resident_now) {
  const GroupsSetting none{Ask::none, "none"};
  GroupsSetting groups = l.sparse ? none : asked.tensor.groups_for(l.type);
  if (asked.solver.solve == Solve::qr && groups.ask != Ask::named)
    groups = none;
  // A kernel that is asked for by name takes all of the tensor for each mode.
  const kernels::DenseKernel kernel = asked.tensor.dense.kernel;
  if (groups.ask == Ask::automatic && kernel != kernels::DenseKernel::automatic &&
      kernel != kernels::DenseKernel::fused && kernel != kernels::DenseKernel::fused_tf32)
    groups = none;
  if (groups.ask != Ask::automatic)
    return tree_by(groups, 0, l, request);
  if (is_gpu(request))
    return tree_by(groups, most_on_device(l, request, asked, resident_now), l, request);
  SweepTree tree = tree_by(groups, quarter_of(l), l, request);
  const SweepPrediction sweep = sweep_of(l, tree, request, asked, {});
  const i64 need = solver_need(sizes_of(l, tree, sweep, request, asked)).together().total();
  if (need <= host_memory(request.options, l.exists ? saturated(l.bytes.stored) : 0).bytes)
    return tree;
  return tree_by(none, 0, l, request);
}

Plan finish(Stored x, const PlanRequest &request) {
  const Asked asked(x.settings, request.options);
  Plan plan;
  plan.layout = std::move(x.layout);
  plan.rank = request.rank;
  plan.workers = static_cast<int>(request.backends.size());
  plan.threads = threads_of(request);
  plan.devices = request.devices;
  const Layout &l = plan.layout;
  plan.available = memory_of(request, l.exists ? saturated(l.bytes.stored) : 0);
  plan.rates = rates_for(plan, request);

  i64 resident_now = 0;
  for (const i64 bytes : x.resident)
    resident_now = std::max(resident_now, bytes);
  const SweepTree tree = tree_of(l, request, asked, resident_now);
  if (!l.sparse) {
    plan.layout.groups = tree.text();
    plan.sweeps = tree.period() / std::ssize(tree.updated());
    plan.layout.why.groups += fmt::format("; a sweep reads the tensor {:.4g} times", tree.passes());
  }
  SweepPrediction sweep = sweep_of(l, tree, request, asked, plan.rates);
  plan.seconds_mttkrp = sweep.seconds_mttkrp;
  plan.seconds_update = sweep.seconds_update;
  for (kernels::Prediction &mode : sweep.modes)
    plan.modes.push_back({std::move(mode.kernel), std::move(mode.conflicts), mode.seconds, mode.bytes, {}, 0, 0, 0});
  const int workers = workers_of(l, request);
  const Holding holding = holding_of(l, asked.tensor.sharding, asked.solver.deterministic, workers, is_gpu(request));
  set_loads(plan, x.partitions, asked, holding, workers);
  predict_exchange(plan, request, asked, tree, holding);
  plan.precision = precision_choice(l.type, asked.tensor.precision(l.type), sweep.gathers,
                                    asked.tensor.dense.kernel == kernels::DenseKernel::gemm);
  plan.conflicts = conflicts_choice(l, asked, is_gpu(request));
  plan.dense_kernel = dense_kernel_choice(l, asked.tensor.dense.kernel, sweep.dense, is_gpu(request));

  const SolverNeed need = solver_need(sizes_of(l, tree, sweep, request, asked));
  plan.host.tensor = saturated(l.bytes.stored / l.shared.sharing + l.besides);
  plan.host.building = saturated(l.bytes.building / l.shared.sharing);
  if (!is_gpu(request)) {
    plan.solver = need.together();
    plan.host.solver = plan.solver.total();
  } else {
    plan.solver = need.host;
    plan.host.solver = need.host.total();
    place_on_devices(plan, x.resident, request, holding);
    plan.device.solver = need.workers.total();
    if (plan.device.streamed > 0 && plan.seconds_mttkrp > 0)
      predict_streaming(plan, rate_of_fetching(*request.backends.front()));
  }
  plan.fits = (l.exists ? plan.host.solver : plan.host.peak()) <= plan.available.bytes;
  return plan;
}

} // namespace

StorageRequest storage_request(const PlanRequest &request, const TensorSettings &settings) {
  return {settings, is_gpu(request) ? static_cast<int>(request.backends.size()) : 0, threads_of(request),
          memory_of(request, 0), request.backends.front()->chip()};
}

namespace {

/// Seconds that a process works in an iteration, with what streams to a GPU of which it comes at the rate `link`.
double work_of(Layout l, const SweepPrediction &sweep, const PlanRequest &request, const Asked &asked, double link) {
  Plan plan;
  plan.workers = 1;
  plan.seconds_mttkrp = sweep.seconds_mttkrp;
  for (const kernels::Prediction &mode : sweep.modes)
    plan.modes.push_back({{}, {}, mode.seconds, mode.bytes, {}, 0, 0, 0});
  plan.layout = std::move(l);
  if (is_gpu(request)) {
    place_on_devices(plan, {}, request,
                     holding_of(plan.layout, asked.tensor.sharding, asked.solver.deterministic, 1, true));
    if (plan.device.streamed > 0)
      predict_streaming(plan, link);
  }
  return plan.seconds_mttkrp > 0 ? plan.seconds_mttkrp + sweep.seconds_update : 0;
}

/// An iteration with 1, 2, 4, ... processes, as long as each has an entry.
void predict_scaling(Plan &plan, std::span<const i64> dims, i64 nnz, ValueType type, const PlanRequest &request,
                     const TensorSettings &settings) {
  const Asked asked(settings, request.options);
  const Network network(request.options);
  const StorageRequest storage = storage_request(request, settings);
  const double link = is_gpu(request) ? rate_of_fetching(*request.backends.front()) : 0;
  for (int processes = 1; processes <= most_processes && processes <= nnz; processes *= 2) {
    const Layout l = layout_of(dims, even_part(dims, nnz, processes), type, storage);
    const SweepPrediction sweep = sweep_of(l, tree_of(l, request, asked, 0), request, asked, plan.rates);
    const double work = sweep.seconds_mttkrp > 0 ? work_of(l, sweep, request, asked, link) : 0;
    if (work <= 0)
      return;
    const double exchange = processes == 1 ? 0 : process_exchange(l, request, asked, network).seconds;
    plan.scaling.push_back(work + exchange);
    if (exchange <= work && plan.scales_to == processes / 2)
      plan.scales_to = processes;
  }
  plan.fastest_processes = 1 << (std::min_element(plan.scaling.begin(), plan.scaling.end()) - plan.scaling.begin());
}

/// What each process makes for a run in order, beside its part of the tensor.
Stored whole_on_each(Layout own, TensorSettings settings, const PlanRequest &request) {
  settings.groups = {Ask::none, "none"};
  const i64 nnz = own.shared.entries;
  Layout whole = layout_of(own.dims, nnz, own.type, storage_request(request, settings));
  whole.shared.processes = own.shared.processes;
  whole.besides = own.bytes.stored;
  const double making = whole.bytes.building + whole_bytes(nnz, static_cast<int>(own.dims.size()), own.type, true);
  whole.bytes.building = std::max(making, own.bytes.building - whole.bytes.stored);
  return {std::move(whole), settings, {}, {}};
}

/// One of several processes; of a shape it is what evenly spread entries make it. Its GPU is as the context's.
Plan plan_of_part(std::span<const i64> dims, const ProcessPart &part, ValueType type, const PlanRequest &request) {
  const TensorSettings settings(request.options);
  if (request.backends.size() > 1)
    throw_error(Status::unsupported,
                "option 'processes' = {} with {}: expected a context of \"cpu\" or of one GPU, as each process is one "
                "worker",
                part.processes, request.devices);
  Layout own = layout_of(dims, part, type, storage_request(request, settings));
  Plan plan = SolverSettings(request.options).deterministic
                  ? finish(whole_on_each(std::move(own), settings, request), request)
                  : finish({std::move(own), settings, {}, {}}, request);
  if (is_gpu(request))
    plan.layout.assumptions.push_back(fmt::format("each process has a GPU as the one here, with {} of its memory free",
                                                  size_text(request.backends.front()->room())));
  return plan;
}

} // namespace

i64 PlaceBytes::peak() const noexcept { return saturated_sum(tensor, std::max(building, solver)); }

void require_rank(i64 rank) {
  if (rank < 1)
    throw_error(Status::shape, "rank = {}: expected rank >= 1", rank);
}

int threads_of(const PlanRequest &request) {
  int threads = 0;
  for (const auto &backend : request.backends)
    threads += backend->threads();
  return threads;
}

int processes_of(const PlanRequest &request) {
  return static_cast<int>(std::max<i64>(1, request.options.integer("processes")));
}

bool is_gpu(const PlanRequest &request) { return request.backends.front()->has_own_memory(); }

SweepTree require_solver(const Layout &layout, const TensorSettings &settings, const PlanRequest &request,
                         bool checkpoint, i64 resident_now) {
  Asked asked(settings, request.options);
  asked.checkpoint = checkpoint;
  SweepTree tree = tree_of(layout, request, asked, resident_now);
  const SweepPrediction sweep = sweep_of(layout, tree, request, asked, {});
  const SolverNeed need = solver_need(sizes_of(layout, tree, sweep, request, asked));
  const auto workers = request.backends.size();
  require_memory(fmt::format("CP-ALS of rank {} with {} worker{}", request.rank, workers, workers == 1 ? "" : "s"),
                 is_gpu(request) ? need.host : need.together(),
                 host_memory(request.options, saturated(layout.bytes.stored / layout.shared.sharing)),
                 workers > 1 ? "a smaller rank needs less, and so do fewer workers" : "a smaller rank needs less");
  return tree;
}

double mttkrp_workspace(const Layout &layout, const TensorSettings &settings, const PlanRequest &request, int mode) {
  const Asked asked(settings, request.options);
  const SweepPrediction sweep = sweep_of(layout, tree_of(layout, request, asked, 0), request, asked, {});
  return sweep.modes[static_cast<std::size_t>(mode)].bytes;
}

Plan plan_of(Stored x, const PlanRequest &request) {
  require_rank(request.rank);
  return finish(std::move(x), request);
}

Plan plan_of(std::span<const i64> dims, i64 nnz, ValueType type, const PlanRequest &request) {
  require_rank(request.rank);
  const TensorSettings settings(request.options);
  if (const int processes = processes_of(request); processes > 1) {
    formats::check_dims(dims);
    if (nnz < 0)
      throw_error(Status::shape, "nnz = {}: expected nnz >= 0", nnz);
    Plan plan = plan_of_part(dims, even_part(dims, nnz, processes), type, request);
    plan.layout.assumptions.emplace_back("entries are spread evenly: of a tensor that is clustered, processes share "
                                         "other numbers of rows");
    if (!plan.layout.is_whole_on_each()) // else the entries are no fewer with more processes
      predict_scaling(plan, dims, nnz, type, request, settings);
    return plan;
  }
  return finish({layout_of(dims, nnz, type, storage_request(request, settings)), settings, {}, {}}, request);
}

Plan plan_of(const EntriesView &entries, const PlanRequest &request) {
  require_rank(request.rank);
  const TensorSettings settings(request.options);
  return finish({layout_of(entries, storage_request(request, settings)), settings, {}, {}}, request);
}

Plan plan_of(std::span<const i64> dims, const ProcessPart &part, ValueType type, const PlanRequest &request) {
  require_rank(request.rank);
  return plan_of_part(dims, part, type, request);
}

Plan plan_of_dense(std::span<const i64> dims, ValueType type, const PlanRequest &request) {
  require_rank(request.rank);
  if (const int processes = processes_of(request); processes > 1)
    throw_error(Status::unsupported, "option 'processes' = {}: expected at most 1 for a dense tensor", processes);
  const TensorSettings settings(request.options);
  return finish({dense_layout(dims, type, storage_request(request, settings)), settings, {}, {}}, request);
}

} // namespace td::plan
