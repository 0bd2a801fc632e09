#include "plan/plan.hpp"

#include <algorithm>
#include <cmath>

#include "comm/communicator.hpp"
#include "core/buffer.hpp"
#include "core/error.hpp"
#include "kernels/memory_order.hpp"
#include "plan/needs.hpp"
#include "plan/network.hpp"
#include "plan/nvecs.hpp"
#include "plan/sweep_prediction.hpp"

namespace td::plan {

namespace {

constexpr int most_processes = 65536; // of option "processes"

/// What each worker's GPU holds of a tensor.
enum class Holding {
  all,      // one worker's, or that of workers in host memory
  summed,   // what the worker sums
  gathered, // a range of entries or slabs; all workers need all of them, span by span
};

Holding holding_of(const Layout &l, ShardingRule rule, bool deterministic, int workers, bool gpu) {
  if (!gpu || workers == 1)
    return Holding::all;
  const bool gathered = !l.sparse                  ? !takes_slabs(l.slabs(), workers, rule, deterministic)
                        : stands_by_rows(l.format) ? deterministic
                                                   : needs_all_entries(workers, rule, deterministic);
  return gathered ? Holding::gathered : Holding::summed;
}

Choice sharding_choice(Format format, ShardingRule rule, bool deterministic, int workers, Holding holding) {
  if (workers == 1)
    return {"none", "one worker has it all"};
  if (format == Format::dense && holding == Holding::summed)
    return {"entries", "each GPU holds slabs, slices of the mode that is slowest in memory, equally many; sums of "
                       "other modes are merged"};
  const char *const gathers =
      holding != Holding::gathered ? ""
      : computes_all_rows(format, deterministic)
          ? "; each GPU holds a part, all gather span after span, and each sums all rows as one alone does"
          : "; each GPU holds a part, and all gather span after span";
  if (format == Format::dense)
    return {"rows", fmt::format("rows of a dense tensor have equally many elements: equally many rows for each "
                                "worker{}",
                                gathers)};
  if (deterministic)
    return {"rows", fmt::format("option 'deterministic' keeps a row's sum on one worker{}", gathers)};
  if (rule != ShardingRule::automatic)
    return {std::string(name_of(rule)), fmt::format("asked for by option 'sharding'{}", gathers)};
  if (format != Format::sorted)
    return {"entries", "entries stand in no order of rows: equally many for each worker, and sums are merged"};
  return {"rows", "each row to one worker, heaviest ranges first to the least loaded; rows above a fair share are cut"};
}

/// What the tensor has been or will be made with, and what for.
struct Asked {
  TensorSettings tensor;
  SolverSettings solver;
  bool checkpoint;

  Asked(const TensorSettings &settings, const Options &options)
      : tensor(settings), solver(options), checkpoint(!options.text("checkpoint").empty()) {}
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
  if (asked.solver.deterministic)
    return {"owner", "option 'deterministic' keeps the order of a row's terms"};
  const bool cells =
      l.sparse && std::any_of(l.partition.begin(), l.partition.end(), [](const GroupLayout &g) { return g.shared; });
  const kernels::Conflicts conflicts = asked.tensor.conflicts;
  return {std::string(name_of(conflicts)), why_conflicts(conflicts, l.format, cells, gpu)};
}

/// `taken`: the kernels that auto comes to in a sweep.
Choice dense_kernel_choice(const Layout &l, kernels::DenseKernel asked, std::span<const kernels::DenseKernel> taken,
                           bool gpu) {
  if (l.format != Format::dense)
    return {"none", fmt::format("format {} has kernels of its own", name_of(l.format))};
  if (!gpu)
    return {"auto", "a CPU has one kernel for dense tensors"};
  if (asked != kernels::DenseKernel::automatic)
    return {std::string(name_of(asked)), "asked for by option 'dense_kernel'"};
  if (taken.size() > 1)
    return {"auto", "fused or gemm, whichever is predicted to be faster in a mode"};
  if (std::count(taken.begin(), taken.end(), kernels::DenseKernel::gemm) > 0)
    return {std::string(name_of(kernels::DenseKernel::gemm)),
            "cuBLAS is predicted to be faster in each mode; fused where its workspace is not free"};
  return {std::string(name_of(kernels::DenseKernel::fused)),
          "multiplies on the tensor cores, with no Khatri-Rao product of all indices in memory"};
}

/// `gathers`: whether rows are read in f32; `products`: whether matrix products add the terms.
Choice precision_choice(ValueType type, Precision precision, bool gathers, bool products) {
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
    choice.why = fmt::format("the type of the values{}", type == ValueType::f64 ? ""
                                                         : products             ? "; matrix products add terms in f32"
                                                                    : "; terms are added up in f64 at intervals");
  return choice;
}

/// How workers would divide a mode if entries were spread evenly.
Partition even_partition(const Layout &l, std::size_t mode, int workers, ShardingRule rule) {
  const bool by_rows = l.format == Format::sorted && !l.partition[l.group_of(static_cast<int>(mode))].shared;
  if (!by_rows || workers == 1)
    return partition_evenly(l.stored_dims[mode], l.nnz, workers);
  const RowCounts counts = RowCounts::even(l.stored_dims[mode], l.nnz);
  return rule == ShardingRule::entries ? partition_entries(counts, workers)
                                       : partition_rows(counts, workers, rule == ShardingRule::automatic);
}

/// `partitions`: of a tensor that there is.
void set_loads(Plan &plan, const std::vector<Partition> &partitions, const Asked &asked, Holding holding) {
  const Layout &l = plan.layout;
  const ShardingRule rule = asked.tensor.sharding;
  const bool deterministic = asked.solver.deterministic;
  const bool all = stands_by_rows(l.format) ? holding == Holding::gathered && computes_all_rows(l.format, deterministic)
                                            : needs_all_entries(plan.workers, rule, deterministic);
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
  plan.sharding = sharding_choice(l.format, rule, deterministic, plan.workers, holding);
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
  return predict_sweep(l, {*request.backends.front(), request.rank, static_cast<int>(request.backends.size()),
                           asked.tensor.conflicts, asked.tensor.sharding, asked.solver.deterministic,
                           asked.tensor.precision(l.type), rates, asked.tensor.dense, &tree});
}

/// How several GPUs exchange.
kernels::ExchangeChoice exchange_in(const PlanRequest &request) {
  std::vector<kernels::Device *> devices;
  for (const auto &backend : request.backends)
    devices.push_back(backend.get());
  return kernels::exchange_between(devices);
}

/// Entries of the longest span that workers gather, of a dense tensor whole slabs.
i64 gathered_entries(const Layout &l) {
  const i64 slab = l.sparse ? 1 : l.nnz / l.slabs();
  return std::min(l.nnz, std::max(slab, span_entries(l.nnz) / slab * slab));
}

/// Bytes of the columns that processes multiply for a start by eigenvectors, three times on the host.
double columns_bytes(const Layout &l, i64 rank) {
  const i64 longest = *std::max_element(l.dims.begin(), l.dims.end());
  const i64 columns = std::max(identity_columns, subspace_columns(longest, std::min(longest, rank)));
  return 3 * 8 * static_cast<double>(longest) * 2 * static_cast<double>(columns);
}

/// What processes exchange takes. Where each has all of the tensor: rows that go to each other process, and those of
/// all that come. Else sums that come, or rows that go; or the rows of a block of the model with their numbers. Of GPUs
/// rows are on them, with their lists and some of a start, and on the host where that is the way, and as they come to
/// or from a block.
void add_shared(SolverSizes &sizes, const Layout &l, const PlanRequest &request, const Asked &asked) {
  const auto rank = static_cast<double>(request.rank);
  const double row = rank * static_cast<double>(size_of(l.type));
  const auto longest = static_cast<double>(*std::max_element(l.dims.begin(), l.dims.end()));
  if (l.shared.shared.empty()) {
    sizes.staged = 2 * longest * row;
    return;
  }
  sizes.block = {0, l.shared.processes};
  sizes.gathers = l.shared.processes > 1 && !asked.solver.distributed;
  i64 most = 0, both = 0, lists = 0; // rows
  for (std::size_t m = 0; m < l.dims.size(); ++m) {
    most = std::max(most, l.shared.shared[m]);
    both = std::max(both, l.shared.shared[m] + l.shared.lent[m]);
    lists += l.shared.shared[m];
  }
  const double settled =
      std::min(std::ceil(longest / l.shared.processes), static_cast<double>(l.shared.entries)) * (row + 16);
  if (!is_gpu(request)) {
    sizes.staged = std::max(static_cast<double>(most) * rank * 8, settled);
    return;
  }
  const i64 row_bytes = saturated(rank * 8);
  sizes.exchanged = static_cast<double>(most) * rank * 8 + 8 * static_cast<double>(lists);
  sizes.staged = static_cast<double>(*std::max_element(l.stored_dims.begin(), l.stored_dims.end())) * row + settled;
  if (request.backends.front()->exchange() != kernels::Exchange::nccl)
    sizes.staged += static_cast<double>(staged_bytes(both, row_bytes));
  for (const i64 dim : l.dims)
    sizes.kernels = std::max(sizes.kernels, start_rows_bytes(sizes.block.of(dim).size(), row));
  sizes.apart = true;
}

/// Refers to the layout's dims.
SolverSizes sizes_of(const Layout &l, const SweepTree &tree, const SweepPrediction &sweep, const PlanRequest &request,
                     const Asked &asked) {
  SolverSizes sizes{l.dims,          l.stored_dims, l.type, request.rank, static_cast<int>(request.backends.size()),
                    asked.checkpoint};
  for (const GroupLayout &group : l.partition)
    if (group.shared && l.sparse)
      sizes.cells = std::max(sizes.cells, static_cast<double>(group.cells));
  sizes.cells = std::max(sizes.cells, static_cast<double>(tree.most_cells()));
  sizes.f64_sums = asked.tensor.precision(l.type).f64_sums;
  sizes.f32_rows = sweep.gathers;
  sizes.solve = asked.solver.solve;
  sizes.many_ranges = sizes.workers > 1 && l.format == Format::sorted && !asked.solver.deterministic;
  sizes.kernels = sweep.bytes;
  if (l.shared.shared.empty()) // before kernels have their workspace
    for (std::size_t m = 0; m < l.dims.size(); ++m)
      sizes.kernels = std::max(
          sizes.kernels, start_rows_bytes(l.dims[m] - l.stored_dims[m],
                                          static_cast<double>(request.rank) * static_cast<double>(size_of(l.type))));
  if (is_gpu(request) && sizes.workers > 1) {
    const i64 row_bytes = saturated(static_cast<double>(request.rank) * static_cast<double>(size_of(l.type)));
    const i64 longest = *std::max_element(l.stored_dims.begin(), l.stored_dims.end());
    const kernels::Exchange exchange = exchange_in(request).way;
    if (exchange == kernels::Exchange::host)
      sizes.staged = static_cast<double>(staged_bytes(std::max(longest, saturated(sizes.cells)), row_bytes));
    if (exchange == kernels::Exchange::host &&
        holding_of(l, asked.tensor.sharding, asked.solver.deterministic, sizes.workers, true) == Holding::gathered)
      sizes.staged = std::max(sizes.staged, static_cast<double>(staged_bytes(gathered_entries(l), 8)));
    // Sums are merged where entries stand in no order of rows; of sorted copies those of the rows that are cut.
    const bool merged = l.format != Format::sorted || sizes.cells > 0;
    // A Gram matrix, with largest magnitudes and inner products.
    const i64 numbers = saturated(static_cast<double>(request.rank) * (static_cast<double>(request.rank) + 2));
    sizes.exchanged = static_cast<double>(
        exchange_bytes(exchange, sizes.workers, numbers,
                       merged && !asked.solver.deterministic ? (longest - 1) / sizes.workers + 1 : 0, row_bytes));
    // Rows with where they begin, tiles, and what of each tile a worker has.
    for (const formats::CopySize &copy : l.copies)
      sizes.part_lists += 16 * copy.rows + sizes.workers * (copy.tiles > 1 ? 64 * copy.tiles : 0);
  }
  if (l.shared.processes > 1 || !l.shared.shared.empty())
    add_shared(sizes, l, request, asked);
  if (asked.solver.nvecs) {
    NvecsNeed start = nvecs_need(l, request.rank, request.backends.front()->threads());
    if (!l.shared.shared.empty()) { // entries on their way to the processes that have their fibers, and a factor
      const double moved = 2 * static_cast<double>(l.nnz) *
                               static_cast<double>(size_of(l.type) + (l.sparse ? 8 * std::ssize(l.dims) : 0)) +
                           static_cast<double>(*std::max_element(l.dims.begin(), l.dims.end())) *
                               static_cast<double>(request.rank) * static_cast<double>(size_of(l.type));
      start.together += moved;
      start.host += moved + columns_bytes(l, request.rank); // columns pass through the host
    }
    sizes.start = is_gpu(request) ? start.device : start.together;
    sizes.start_host = is_gpu(request) ? start.host : 0;
  }
  return sizes;
}

SweepTree tree_by(GroupsSetting groups, double most_bytes, const Layout &l, const PlanRequest &request) {
  return SweepTree({l.stored_dims, l.type, request.rank, std::move(groups),
                    UpdateOrder(request.options, static_cast<int>(l.dims.size())).updated_modes,
                    request.backends.front().get(), most_bytes});
}

/// Bytes that a partial product may take at most, wherever the tensor lies.
double quarter_of(const Layout &l) { return (l.bytes.stored + l.lent_bytes) / 4; }

/// Bytes that a partial product may take on a device that keeps `kept` bytes of the tensor: a quarter of the tensor
/// where it fits besides, and where the tensor is streamed little of the room that it leaves less of. In order the
/// choice may not depend on how many devices there are.
double most_on_device(const Layout &l, const PlanRequest &request, const Asked &asked, i64 kept) {
  const bool slabs = takes_slabs(l.slabs(), static_cast<int>(request.backends.size()), asked.tensor.sharding,
                                 asked.solver.deterministic);
  const double workers = slabs ? static_cast<double>(request.backends.size()) : 1;
  const auto room = static_cast<double>(request.backends.front()->room() + kept);
  const double quarter = quarter_of(l);
  const double resident = l.in_place ? 0 : 4 * quarter / workers;
  return resident + quarter <= room ? quarter : std::min(quarter, room / 16);
}

SweepTree tree_of(const Layout &l, const PlanRequest &request, const Asked &asked, i64 kept) {
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
    return tree_by(groups, most_on_device(l, request, asked, kept), l, request);
  SweepTree tree = tree_by(groups, quarter_of(l), l, request);
  const SweepPrediction sweep = sweep_of(l, tree, request, asked, {});
  const i64 need = solver_need(sizes_of(l, tree, sweep, request, asked)).together().total();
  if (need <= host_memory(request.options, l.exists ? saturated(l.bytes.stored) : 0).bytes)
    return tree;
  return tree_by(none, 0, l, request);
}

/// What part of the tensor each worker's GPU holds (tensor/part.hpp).
std::vector<double> parts_of(const Plan &plan, Holding holding) {
  const Layout &l = plan.layout;
  const auto workers = static_cast<std::size_t>(plan.workers);
  if (workers == 1 || l.nnz == 0)
    return std::vector<double>(workers, 1.0);
  std::vector<double> parts(workers, 0.0);
  if (!l.sparse || holding == Holding::gathered) {
    const i64 pieces = l.sparse ? l.nnz : l.slabs();
    for (int w = 0; w < plan.workers; ++w)
      parts[static_cast<std::size_t>(w)] =
          static_cast<double>(part_of({0, pieces}, w, plan.workers).size()) / static_cast<double>(pieces);
    return parts;
  }
  double all = 0; // bytes of entries
  const auto add = [&](double bytes, const ModePlan &mode) {
    all += bytes;
    for (std::size_t w = 0; w < workers; ++w)
      parts[w] += bytes * mode.load[w] / static_cast<double>(l.nnz);
  };
  if (l.format != Format::sorted)
    add(1, plan.modes.front());
  for (std::size_t g = 0; g < l.copies.size(); ++g)
    add(l.copies[g].key_bytes + static_cast<double>(size_of(l.type)),
        plan.modes[static_cast<std::size_t>(l.partition[g].modes.front())]);
  for (double &part : parts)
    part /= all;
  return parts;
}

/// Bytes of an entry of a form; of a sorted copy those of its value.
double entry_bytes(const Layout &l) {
  return static_cast<double>(size_of(l.type)) + (l.format == Format::blco  ? 8
                                                 : l.format == Format::coo ? 8 * static_cast<double>(l.dims.size())
                                                                           : 0);
}

/// What GPUs keep of the tensor, of which they have `already` bytes of entries by now, as tensor/resident.cpp will have
/// it.
void place_on_devices(Plan &plan, const std::vector<i64> &already, const PlanRequest &request, Holding holding) {
  const Layout &l = plan.layout;
  if (l.in_place)
    return;
  double each = entry_bytes(l); // in all copies
  double longest = each;
  if (l.format == Format::sorted) {
    const double value = std::exchange(each, 0);
    longest = 0;
    for (const formats::CopySize &copy : l.copies) {
      each += copy.key_bytes + value;
      longest = std::max(longest, copy.key_bytes + value);
    }
  }
  const std::vector<double> parts = parts_of(plan, holding);
  const double gathered = holding == Holding::gathered ? longest * static_cast<double>(gathered_entries(l)) : 0;
  double placed = 0;
  double streamed = 0;
  for (std::size_t w = 0; w < parts.size(); ++w) {
    const double entries = each * static_cast<double>(l.nnz) * parts[w];
    const double all = l.bytes.stored + l.lent_bytes;
    const double stored = // lists are of what a worker has, or whole
        holding == Holding::gathered ? entries + all - each * static_cast<double>(l.nnz) : all * parts[w];
    const double room = static_cast<double>(request.backends[w]->room() + (already.empty() ? 0 : already[w]));
    if (stored <= room) {
      placed += stored + gathered;
      continue;
    }
    const double span = parts[w] * static_cast<double>(l.nnz);
    const double passing = gathered > 0 ? 3 * gathered
                                        : std::min(3 * longest * static_cast<double>(span_entries(saturated(span))),
                                                   std::max(room, 0.0) / 4);
    const double lists = stored - entries;
    const double kept = std::clamp(room - lists - passing, 0.0, entries);
    placed += lists + passing + kept;
    streamed += entries - kept;
  }
  plan.device.tensor = saturated(placed);
  plan.device.streamed = saturated(streamed);
}

/// Bytes a second that come to a device as the parts of a streamed tensor do, measured; 0 where too little memory is
/// free for it: no copy of a tensor goes for a plan's sake.
double rate_of_fetching(kernels::Backend &backend) {
  kernels::DeviceBuffer to;
  for (i64 bytes = i64{32} << 20; bytes >= i64{1} << 20 && to.bytes() == 0; bytes /= 2)
    to = kernels::DeviceBuffer::of_free(backend, bytes, "bytes from the host");
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
void tell_streaming(Plan &plan, double link) {
  const double streamed = static_cast<double>(plan.device.streamed) / plan.workers; // each GPU has a link
  const double copies = plan.layout.format == Format::sorted ? static_cast<double>(plan.layout.copies.size()) : 1;
  plan.seconds_mttkrp = 0;
  for (ModePlan &mode : plan.modes) {
    mode.seconds = link > 0 ? std::max(mode.seconds, streamed / copies / link) : 0;
    plan.seconds_mttkrp += mode.seconds;
  }
}

/// Bytes a second that one device copies out of another's memory, measured; 0 where too little memory is free for it.
double rate_between(kernels::Backend &to, kernels::Backend &from) {
  const i64 bytes = i64{32} << 20;
  const auto target = kernels::DeviceBuffer::of_free(to, bytes, "bytes of another GPU");
  const auto source = kernels::DeviceBuffer::of_free(from, bytes, "bytes for another GPU");
  if (target.bytes() == 0 || source.bytes() == 0 || !to.reach(from))
    return 0;
  from.set_zero({source.data(), ValueType::f64, 1, bytes / 8, bytes / 8});
  from.raise(kernels::Signal::written);
  to.wait_for(from, kernels::Signal::written);
  double least = 0;
  for (int round = 0; round < 3; ++round) {
    to.mark(0);
    to.copy_from(from, target.data(), source.data(), bytes);
    to.mark(1);
    const double seconds = std::max(to.seconds_between(0, 1), 1e-9);
    least = round == 0 ? seconds : std::min(least, seconds);
  }
  return static_cast<double>(bytes) / least;
}

ProcessExchange exchange_of(const Layout &l, const PlanRequest &request, const Asked &asked, const Network &network) {
  return process_exchange(l, request.rank, asked.tensor.precision(l.type).f64_sums ? 8 : size_of(l.type),
                          UpdateOrder(request.options, static_cast<int>(l.dims.size())).updated_modes, network);
}

/// What an update by QR decompositions sends besides, of f64 numbers: sums of a mode for more columns than the rank,
/// and rows of its orthogonal factor, with a triangle to each process (solvers/qr_update.cpp).
double qr_exchange(const Layout &l, const std::vector<int> &updated, std::size_t mode, i64 rank) {
  double combinations = 1;
  for (std::size_t m = 0; m < l.dims.size(); ++m)
    if (m != mode)
      combinations *= static_cast<double>(std::min(l.dims[m], rank));
  const double sums = std::ceil(combinations / static_cast<double>(rank)) - 1;
  double numbers = sums * static_cast<double>(l.shared.lent[mode] * rank);
  if (updated.size() > 1) // else it is in no update of another
    numbers += static_cast<double>(l.shared.shared[mode] * std::min(l.dims[mode], rank) +
                                   (l.shared.processes - 1) * rank * rank);
  return 8 * numbers;
}

/// Sums of rows that others own go to them, and the updated rows come back; as much comes and goes of its own rows. The
/// sums of all processes besides, of rank x rank numbers a mode, are not counted as bytes.
void tell_shared(Plan &plan, const PlanRequest &request, const Asked &asked) {
  plan.exchange = {"processes", "by the functions of the caller's communicator"};
  if (is_gpu(request))
    plan.exchange.why = request.backends.front()->exchange() == kernels::Exchange::host
                            ? "by way of the host, with the functions of the caller's communicator"
                            : "by NCCL where it connects the GPUs, else by way of the host";
  const Layout &l = plan.layout;
  const auto order = static_cast<int>(l.dims.size());
  const std::vector<int> updated = UpdateOrder(request.options, order).updated_modes;
  if (l.shared.shared.empty()) { // own rows of each factor, and of the last product, to each other process
    double rows = static_cast<double>(l.stored_dims[static_cast<std::size_t>(updated.back())]);
    for (const int m : updated)
      rows += static_cast<double>(l.stored_dims[static_cast<std::size_t>(m)]);
    const double processes = l.shared.processes;
    plan.layout.assumptions.emplace_back(
        "each process holds all of the tensor (option 'deterministic'), and has equally "
        "many rows to compute and to send");
    plan.exchanged = saturated(rows * static_cast<double>(plan.rank) * static_cast<double>(size_of(l.type)) *
                               (processes - 1) / processes);
    return;
  }
  const Network network(request.options);
  ProcessExchange exchange = exchange_of(l, request, asked, network);
  for (const int m : updated)
    if (asked.solver.solve == Solve::qr) {
      const double more = qr_exchange(l, updated, static_cast<std::size_t>(m), plan.rank);
      exchange.bytes += more;
      exchange.seconds += more / network.rate;
    }
  plan.exchanged = saturated(exchange.bytes);
  plan.exchange_messages = saturated(exchange.messages);
  plan.exchange_calls = exchange.calls;
  plan.seconds_exchange = exchange.seconds;
  plan.layout.assumptions.push_back(fmt::format(
      "a message between processes takes {:.3g} microseconds (option 'link_latency'), and each sends {:.4g} GB/s{}",
      1e6 * network.latency, network.rate / 1e9,
      network.assumed ? ", as over a network of 100 Gbit/s (option 'link_rate')" : ""));
}

/// The rate between GPUs that are not there is that of two H200 by NVLink (bench/results): it is said to be assumed.
double rate_of_link(Plan &plan, const PlanRequest &request, kernels::Exchange exchange) {
  constexpr double of_nvlink = 3.95e11;
  if (const double given = request.options.real("link_rate"); given > 0)
    return given;
  if (exchange == kernels::Exchange::host)
    return 0;
  if (request.backends[0] != request.backends[1])
    return rate_between(*request.backends[0], *request.backends[1]);
  plan.layout.assumptions.push_back(fmt::format(
      "a GPU receives {:.0f} GB/s from others, as by NVLink between two H200 (option 'link_rate')", of_nvlink / 1e9));
  return of_nvlink;
}

/// Bytes that all workers together gather in an iteration: the entries of each MTTKRP, of a sorted copy those of the
/// modes that it serves. Of a dense tensor that is what reads it, or, if each worker computes rows of its own, of that
/// what adds up slabs.
double gathered_bytes(const Layout &l, const SweepTree &tree, bool deterministic) {
  const auto nnz = static_cast<double>(l.nnz);
  if (l.format == Format::sorted) {
    double bytes = 0;
    for (const formats::CopySize &copy : l.copies)
      bytes += copy.key_bytes + entry_bytes(l);
    return bytes * nnz;
  }
  if (l.sparse)
    return static_cast<double>(l.dims.size()) * entry_bytes(l) * nnz;
  const int slowest = kernels::slowest_mode({l.dims, l.type, nullptr, l.strides});
  double times = 0;
  for (i64 step = 0; step < tree.period(); ++step) {
    const PartialProduct *const p = tree.at(step);
    const int mode = tree.updated()[static_cast<std::size_t>(step) % tree.updated().size()];
    const bool reads = p == nullptr || tree.reads(step);
    const bool own_slabs = !deterministic && (p == nullptr ? mode == slowest : p->keeps(slowest));
    times += reads && !own_slabs ? 1 : 0;
  }
  return times * static_cast<double>(tree.updated().size()) / static_cast<double>(tree.period()) * entry_bytes(l) * nnz;
}

/// In each mode a GPU receives the rows of the factor that others own, and the sums of its own rows that others have
/// where these are merged; and entries of the tensor where workers gather them.
void tell_exchange(Plan &plan, const PlanRequest &request, const Asked &asked, const SweepTree &tree, Holding holding) {
  if (plan.layout.shared.processes > 1)
    return tell_shared(plan, request, asked);
  const bool deterministic = asked.solver.deterministic;
  if (!is_gpu(request) || plan.workers == 1) {
    plan.exchange = {"none", plan.workers == 1 ? "one worker" : "workers share the host's memory"};
    return;
  }
  const kernels::ExchangeChoice exchange = exchange_in(request);
  plan.exchange = {std::string(name_of(exchange.way)), exchange.why};
  const Layout &l = plan.layout;
  const double others = (plan.workers - 1.0) / plan.workers;
  double bytes = 0;
  for (std::size_t m = 0; m < l.stored_dims.size(); ++m) {
    const bool by_rows = l.format == Format::sorted && !l.partition[l.group_of(static_cast<int>(m))].shared;
    const double passes = deterministic || by_rows || plan.sharding.what == "rows" ? 1 : 2;
    bytes += passes * others * static_cast<double>(l.stored_dims[m]) * static_cast<double>(plan.rank) *
             static_cast<double>(size_of(l.type));
  }
  if (holding == Holding::gathered)
    bytes += others * gathered_bytes(l, tree, deterministic);
  plan.exchanged = saturated(bytes);
  const double rate = rate_of_link(plan, request, exchange.way);
  plan.seconds_exchange = rate > 0 ? bytes / rate : 0;
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

  i64 kept = 0;
  for (const i64 bytes : x.kept)
    kept = std::max(kept, bytes);
  const SweepTree tree = tree_of(l, request, asked, kept);
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
  const Holding holding =
      holding_of(l, asked.tensor.sharding, asked.solver.deterministic, plan.workers, is_gpu(request));
  set_loads(plan, x.partitions, asked, holding);
  tell_exchange(plan, request, asked, tree, holding);
  plan.precision = precision_choice(l.type, asked.tensor.precision(l.type), sweep.gathers,
                                    asked.tensor.dense.kernel == kernels::DenseKernel::gemm);
  plan.conflicts = conflicts_choice(l, asked, is_gpu(request));
  plan.dense_kernel = dense_kernel_choice(l, asked.tensor.dense.kernel, sweep.dense, is_gpu(request));

  const SolverNeed need = solver_need(sizes_of(l, tree, sweep, request, asked));
  plan.host.tensor = saturated(l.bytes.stored);
  plan.host.building = saturated(l.bytes.building);
  if (!is_gpu(request)) {
    plan.solver = need.together();
    plan.host.solver = plan.solver.total();
  } else {
    plan.solver = need.host;
    plan.host.solver = need.host.total();
    place_on_devices(plan, x.kept, request, holding);
    plan.device.solver = need.workers.total();
    if (plan.device.streamed > 0 && plan.seconds_mttkrp > 0)
      tell_streaming(plan, rate_of_fetching(*request.backends.front()));
  }
  plan.fits = (l.exists ? plan.host.solver : plan.host.peak()) <= plan.available.bytes;
  return plan;
}

} // namespace

StorageRequest storage_request(const PlanRequest &request, const TensorSettings &settings) {
  return {settings, is_gpu(request), threads_of(request), memory_of(request, 0), request.backends.front()->chip()};
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
      tell_streaming(plan, link);
  }
  return plan.seconds_mttkrp > 0 ? plan.seconds_mttkrp + sweep.seconds_update : 0;
}

/// An iteration with 1, 2, 4, ... processes, as long as each has an entry.
void tell_scaling(Plan &plan, std::span<const i64> dims, i64 nnz, ValueType type, const PlanRequest &request,
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
    const double exchange = processes == 1 ? 0 : exchange_of(l, request, asked, network).seconds;
    plan.scaling.push_back(work + exchange);
    if (exchange <= work && plan.scales_to == processes / 2)
      plan.scales_to = processes;
  }
  plan.fastest_processes = 1 << (std::min_element(plan.scaling.begin(), plan.scaling.end()) - plan.scaling.begin());
}

/// One of several processes; of a shape it is what evenly spread entries make it. Its GPU is as the context's.
Plan plan_of_part(std::span<const i64> dims, const ProcessPart &part, ValueType type, const PlanRequest &request) {
  const TensorSettings settings(request.options);
  if (request.backends.size() > 1)
    throw_error(Status::unsupported,
                "option 'processes' = {} with {}: expected a context of \"cpu\" or of one GPU, as each process is one "
                "worker",
                part.processes, request.devices);
  if (is_gpu(request) && SolverSettings(request.options).deterministic)
    throw_error(Status::unsupported,
                "option 'deterministic' = 1 on GPUs of {} processes: expected a context of \"cpu\", or one process",
                part.processes);
  Plan plan = finish({layout_of(dims, part, type, storage_request(request, settings)), settings, {}, {}}, request);
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

bool is_gpu(const PlanRequest &request) { return request.backends.front()->memory() != nullptr; }

SweepTree require_solver(const Layout &layout, const TensorSettings &settings, const PlanRequest &request,
                         bool checkpoint, i64 kept) {
  Asked asked(settings, request.options);
  asked.checkpoint = checkpoint;
  SweepTree tree = tree_of(layout, request, asked, kept);
  const SweepPrediction sweep = sweep_of(layout, tree, request, asked, {});
  const SolverNeed need = solver_need(sizes_of(layout, tree, sweep, request, asked));
  const auto workers = request.backends.size();
  require_memory(fmt::format("CP-ALS of rank {} with {} worker{}", request.rank, workers, workers == 1 ? "" : "s"),
                 is_gpu(request) ? need.host : need.together(),
                 host_memory(request.options, saturated(layout.bytes.stored)),
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
    tell_scaling(plan, dims, nnz, type, request, settings);
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
