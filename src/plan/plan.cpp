#include "plan/plan.hpp"

#include <algorithm>
#include <optional>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "plan/needs.hpp"
#include "plan/nvecs.hpp"
#include "plan/sharding.hpp"
#include "plan/spans.hpp"
#include "plan/sweep_forecast.hpp"

namespace td::plan {

namespace {

Choice sharding_choice(Format format, ShardingRule rule, bool deterministic, int workers) {
  if (workers == 1)
    return {"none", "one worker has it all"};
  if (format == Format::dense)
    return {"rows", "rows of a dense tensor have equally many elements: equally many rows for each worker"};
  if (deterministic)
    return {"rows", "option 'deterministic' keeps a row's sum on one worker"};
  if (rule != ShardingRule::automatic)
    return {std::string(name_of(rule)), "asked for by option 'sharding'"};
  if (format != Format::sorted)
    return {"entries", "entries stand in no order of rows: equally many for each worker, and sums are merged"};
  return {"rows", "each row to one worker, heaviest ranges first to the least loaded; rows above a fair share are cut"};
}

bool is_gpu(const PlanRequest &request) { return request.backends.front()->memory() != nullptr; }

/// What the tensor has been or will be made with, and what for.
struct Asked {
  TensorSettings tensor;
  bool deterministic;
  bool qr;
  bool nvecs;
  bool checkpoint;

  Asked(const Tensor *x, const Options &options)
      : tensor(x != nullptr ? x->settings() : TensorSettings(options)),
        deterministic(options.integer("deterministic") != 0), qr(options.text("solve") == "qr"),
        nvecs(options.text("init") == "nvecs"), checkpoint(!options.text("checkpoint").empty()) {}
};

std::string why_conflicts(kernels::Conflicts conflicts, Format format, bool cells, bool gpu) {
  if (conflicts != kernels::Conflicts::automatic)
    return "asked for by option 'conflicts'";
  const std::string_view scattered =
      gpu && format == Format::blco
          ? "copies of the result for modes shorter than the GPU has multiprocessors, else atomic additions"
      : gpu ? "atomic additions"
            : "private rows where they take little memory, else atomic additions";
  if (format != Format::sorted && format != Format::dense)
    return std::string(scattered);
  const std::string_view rows = format == Format::sorted ? "entries sorted by row: each row has an owner"
                                                         : "fixed parts of a dense tensor, summed in order";
  return cells ? fmt::format("{}; cells of groups: {}", rows, scattered) : std::string(rows);
}

Choice conflicts_choice(const Layout &l, const Asked &asked, bool gpu) {
  if (asked.deterministic)
    return {"owner", "option 'deterministic' keeps the order of a row's terms"};
  const bool cells = std::any_of(l.partition.begin(), l.partition.end(), [](const GroupLayout &g) { return g.shared; });
  const kernels::Conflicts conflicts = asked.tensor.conflicts;
  return {std::string(name_of(conflicts)), why_conflicts(conflicts, l.format, cells, gpu)};
}

/// `gathers`: whether rows are read in f32.
Choice precision_choice(ValueType type, Precision precision, bool gathers) {
  Choice choice;
  choice.what = fmt::format("{}{}", name_of(type),
                            precision.f64_sums ? " with f64 sums"
                            : gathers          ? " with f32 rows"
                                               : "");
  if (precision.f64_sums)
    choice.why = "asked for by option 'accumulate'";
  else if (precision.f32_rows)
    choice.why = gathers ? "asked for by option 'gather'"
                         : "option 'gather' allows f32 rows, by which these kernels gain nothing";
  else
    choice.why = fmt::format("the type of the values{}",
                             type == ValueType::f32 ? "; terms are added up in f64 at intervals" : "");
  return choice;
}

int threads_of(const PlanRequest &request) {
  int threads = 0;
  for (const auto &backend : request.backends)
    threads += backend->threads();
  return threads;
}

/// How workers would divide a mode if entries were spread evenly.
Division even_division(const Layout &l, std::size_t mode, int workers, ShardingRule rule) {
  const bool by_rows = l.format == Format::sorted && !l.partition[l.group_of(static_cast<int>(mode))].shared;
  if (!by_rows || workers == 1)
    return divide_evenly(l.stored_dims[mode], l.nnz, workers);
  const RowCounts counts = RowCounts::even(l.stored_dims[mode], l.nnz);
  return rule == ShardingRule::entries ? divide_entries(counts, workers)
                                       : divide_rows(counts, workers, rule == ShardingRule::automatic);
}

void set_loads(Plan &plan, const Tensor *x, const Asked &asked) {
  const Layout &l = plan.layout;
  const ShardingRule rule = asked.tensor.sharding;
  const bool deterministic = asked.deterministic;
  const bool by_rows = l.format == Format::sorted || l.format == Format::dense;
  std::optional<Sharding> of_tensor;
  if (x != nullptr)
    of_tensor.emplace(*x, plan.workers, deterministic);
  for (std::size_t m = 0; m < plan.modes.size(); ++m) {
    const std::size_t group = l.group_of(static_cast<int>(m));
    Division division;
    if (!of_tensor)
      division = even_division(l, m, plan.workers, deterministic ? ShardingRule::rows : rule);
    else
      division =
          l.partition[group].shared ? of_tensor->cells(static_cast<int>(group)) : of_tensor->rows(static_cast<int>(m));
    ModePlan &mode = plan.modes[m];
    mode.load.assign(division.load.begin(), division.load.end());
    if (!by_rows && (deterministic || rule == ShardingRule::rows)) // each looks at all entries for its rows
      std::fill(mode.load.begin(), mode.load.end(), static_cast<double>(l.nnz));
    mode.split_rows = static_cast<i64>(division.split.size());
    mode.imbalance = division.imbalance();
  }
  plan.sharding = sharding_choice(l.format, rule, deterministic, plan.workers);
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

SweepForecast sweep_of(const Layout &l, const PlanRequest &request, const Asked &asked, const kernels::Rates &rates) {
  return forecast_sweep(l, {*request.backends.front(), request.rank, static_cast<int>(request.backends.size()),
                            asked.tensor.conflicts, asked.tensor.sharding, asked.deterministic,
                            asked.tensor.precision(l.type), rates});
}

/// Refers to the layout's dims.
SolverSizes sizes_of(const Layout &l, const SweepForecast &sweep, const PlanRequest &request, const Asked &asked) {
  SolverSizes sizes{l.dims,          l.stored_dims, l.type, request.rank, static_cast<int>(request.backends.size()),
                    asked.checkpoint};
  for (const GroupLayout &group : l.partition)
    if (group.shared)
      sizes.cells = std::max(sizes.cells, static_cast<double>(group.cells));
  sizes.cell_bytes = l.cell_bytes;
  sizes.f64_sums = asked.tensor.precision(l.type).f64_sums;
  sizes.f32_rows = sweep.gathers;
  sizes.qr = asked.qr;
  sizes.kernels = sweep.bytes;
  if (asked.nvecs) {
    const NvecsNeed start = nvecs_need(l, request.rank, request.backends.front()->threads());
    sizes.start = is_gpu(request) ? start.device : start.together;
    sizes.start_host = is_gpu(request) ? start.host : 0;
  }
  return sizes;
}

/// What a GPU keeps of the tensor, as plan/resident.cpp will have it.
void place_on_device(Plan &plan, const Tensor *x, const kernels::Backend &backend) {
  const Layout &l = plan.layout;
  double each = static_cast<double>(size_of(l.type)); // bytes of an entry, in all copies
  double longest = each;
  if (l.format == Format::sorted) {
    const double value = std::exchange(each, 0);
    for (const formats::CopySize &copy : l.copies) {
      each += copy.key_bytes + value;
      longest = std::max(longest, copy.key_bytes + value);
    }
  } else {
    longest = each += l.format == Format::blco  ? 8
                      : l.format == Format::coo ? 8 * static_cast<double>(l.dims.size())
                                                : 0;
  }
  const double entries = each * static_cast<double>(l.nnz);
  const double room = static_cast<double>(backend.room() + (x == nullptr ? 0 : x->kept_on(backend)));
  plan.device.tensor = plan.host.tensor;
  if (l.bytes.stored <= room)
    return;
  const double passing = std::min(3 * longest * static_cast<double>(span_entries(l.nnz)), std::max(room, 0.0) / 4);
  const double lists = l.bytes.stored - entries;
  const double kept = std::clamp(room - lists - passing, 0.0, entries);
  plan.device.tensor = saturated(lists + passing + kept);
  plan.device.streamed = saturated(entries - kept);
}

/// Bytes a second that come to a device as the parts of a streamed tensor do, measured; 0 where too little memory is
/// free for it: no copy of a tensor goes for a plan's sake.
double rate_of_fetching(kernels::Backend &backend) {
  kernels::BackendBuffer to;
  for (i64 bytes = i64{32} << 20; bytes >= i64{1} << 20 && to.bytes() == 0; bytes /= 2)
    to = kernels::BackendBuffer::of_free(backend, bytes, "bytes from the host");
  const i64 bytes = to.bytes();
  if (bytes == 0)
    return 0;
  auto from = Buffer<char>::zeros(bytes, "bytes on their way to the GPU");
  const auto pinned = backend.pin(from.data(), bytes);
  double least = 0;
  for (int round = 0; round < 3; ++round) { // the first one also makes what copies need
    backend.done(0);
    backend.mark(0);
    backend.fetch(0, to.data(), from.data(), bytes);
    backend.await(0);
    backend.mark(1);
    const double seconds = std::max(backend.seconds_between(0, 1), 1e-9);
    least = round == 0 ? seconds : std::min(least, seconds);
  }
  backend.done(0);
  return static_cast<double>(bytes) / least;
}

/// What passes from the host passes beside the work: whichever takes longer. Of the copies of "sorted" each mode has
/// its own share; another format's one copy passes in every mode.
void tell_streaming(Plan &plan, kernels::Backend &backend) {
  const auto streamed = static_cast<double>(plan.device.streamed);
  if (streamed <= 0 || plan.seconds_mttkrp <= 0)
    return;
  const double link = rate_of_fetching(backend);
  const double copies = plan.layout.format == Format::sorted ? static_cast<double>(plan.layout.copies.size()) : 1;
  plan.seconds_mttkrp = 0;
  for (ModePlan &mode : plan.modes) {
    mode.seconds = link > 0 ? std::max(mode.seconds, streamed / copies / link) : 0;
    plan.seconds_mttkrp += mode.seconds;
  }
}

Plan finish(Layout layout, const Tensor *x, const PlanRequest &request, const Asked &asked) {
  Plan plan;
  plan.layout = std::move(layout);
  plan.rank = request.rank;
  plan.workers = static_cast<int>(request.backends.size());
  plan.threads = threads_of(request);
  plan.devices = request.devices;
  const Layout &l = plan.layout;
  plan.available = host_memory(request.options, l.exists ? saturated(l.bytes.stored) : 0);
  plan.rates = rates_for(plan, request);

  SweepForecast sweep = sweep_of(l, request, asked, plan.rates);
  plan.seconds_mttkrp = sweep.seconds_mttkrp;
  plan.seconds_update = sweep.seconds_update;
  for (kernels::Forecast &mode : sweep.modes)
    plan.modes.push_back({std::move(mode.kernel), std::move(mode.conflicts), mode.seconds, {}, 0, 0});
  set_loads(plan, x, asked);
  plan.precision = precision_choice(l.type, asked.tensor.precision(l.type), sweep.gathers);
  plan.conflicts = conflicts_choice(l, asked, is_gpu(request));

  const SolverNeed need = solver_need(sizes_of(l, sweep, request, asked));
  plan.host.tensor = saturated(l.bytes.stored);
  plan.host.building = saturated(l.bytes.building);
  if (!is_gpu(request)) {
    plan.solver = need.together();
    plan.host.solver = plan.solver.total();
  } else {
    plan.solver = need.host;
    plan.host.solver = need.host.total();
    place_on_device(plan, x, *request.backends.front());
    plan.device.solver = need.workers.total();
    tell_streaming(plan, *request.backends.front());
  }
  plan.fits = (l.exists ? plan.host.solver : plan.host.peak()) <= plan.available.bytes;
  return plan;
}

void require_rank(const PlanRequest &request) {
  if (request.rank < 1)
    throw_error(Status::shape, "rank = {}: expected rank >= 1", request.rank);
}

StorageRequest storage_request(const PlanRequest &request, const Asked &asked) {
  return {asked.tensor, is_gpu(request), threads_of(request), host_memory(request.options, 0)};
}

} // namespace

i64 PlaceBytes::peak() const noexcept { return saturated_sum(tensor, std::max(building, solver)); }

Plan plan_of(const Tensor &x, const PlanRequest &request) {
  require_rank(request);
  return finish(layout_of(x, request.rank, threads_of(request)), &x, request, {&x, request.options});
}

void require_solver(const Tensor &x, const PlanRequest &request, bool checkpoint) {
  require_rank(request);
  Asked asked(&x, request.options);
  asked.checkpoint = checkpoint;
  const Layout layout = layout_of(x, request.rank, threads_of(request));
  const SweepForecast sweep = sweep_of(layout, request, asked, {});
  const SolverNeed need = solver_need(sizes_of(layout, sweep, request, asked));
  const auto workers = request.backends.size();
  require_memory(fmt::format("CP-ALS of rank {} with {} worker{}", request.rank, workers, workers == 1 ? "" : "s"),
                 is_gpu(request) ? need.host : need.together(), host_memory(request.options, x.bytes()),
                 workers > 1 ? "a smaller rank needs less, and so do fewer workers" : "a smaller rank needs less");
}

void require_mttkrp(const Tensor &x, const PlanRequest &request, int mode) {
  const auto m = static_cast<std::size_t>(mode);
  const auto rank = static_cast<double>(request.rank);
  const double row = rank * static_cast<double>(size_of(x.type()));
  const auto workers = static_cast<double>(request.backends.size());
  const auto rows = [](std::span<const i64> dims) {
    double sum = 0;
    for (const i64 dim : dims)
      sum += static_cast<double>(dim);
    return sum;
  };
  MemoryNeed need;
  const MemoryBudget budget(request.options, x.bytes());
  if (!is_gpu(request)) {
    need.add("the factors at work", workers * rows(x.stored_dims()) * row);
    need.add("the result of MTTKRP", workers * static_cast<double>(x.stored_dims()[m]) * row);
    const Groups &groups = x.groups();
    const int group = groups.group_of(mode);
    if (groups.modes(group).size() > 1 && (x.sparse() || groups.named()))
      need.add("partial products", workers * static_cast<double>(groups.cell_count(group)) * row);
    // What kernels take for a while is small beside the tensor where this is small.
    if (request.rank > 0 && (budget.limit() > 0 || budget.concerns(need.total()))) {
      const Layout layout = layout_of(x, request.rank, threads_of(request));
      const SweepForecast sweep = sweep_of(layout, request, {&x, request.options}, {});
      need.add("sums on their way", workers * sweep.modes[m].bytes);
      need.add("the coordinates of cells", layout.cell_bytes);
    }
  }
  budget.require(fmt::format("MTTKRP of rank {} in mode {}", request.rank, mode), need, "a smaller rank needs less");
}

Plan plan_of(std::span<const i64> dims, i64 nnz, ValueType type, const PlanRequest &request) {
  require_rank(request);
  const Asked asked(nullptr, request.options);
  return finish(layout_of(dims, nnz, type, storage_request(request, asked)), nullptr, request, asked);
}

Plan plan_of(const EntriesView &entries, const PlanRequest &request) {
  require_rank(request);
  const Asked asked(nullptr, request.options);
  return finish(layout_of(entries, storage_request(request, asked)), nullptr, request, asked);
}

Plan plan_of_dense(std::span<const i64> dims, ValueType type, const PlanRequest &request) {
  require_rank(request);
  const Asked asked(nullptr, request.options);
  return finish(dense_layout(dims, type, request.rank, storage_request(request, asked)), nullptr, request, asked);
}

} // namespace td::plan
