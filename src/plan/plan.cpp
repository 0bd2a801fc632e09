#include "plan/plan.hpp"

#include <algorithm>
#include <optional>

#include <fmt/ranges.h>

#include "core/error.hpp"
#include "plan/sharding.hpp"

namespace td::plan {

namespace {

i64 whole(double bytes) {
  MemoryNeed need;
  need.add("", bytes);
  return need.total();
}

i64 sum(i64 a, i64 b) { return a > std::numeric_limits<i64>::max() - b ? std::numeric_limits<i64>::max() : a + b; }

std::size_t group_of(const Layout &l, int mode) {
  std::size_t g = 0;
  while (std::count(l.partition[g].modes.begin(), l.partition[g].modes.end(), mode) == 0)
    ++g;
  return g;
}

Choice sharding_choice(bool by_rows, const std::string &option, bool deterministic, int workers) {
  if (workers == 1)
    return {"none", "one worker has it all"};
  if (deterministic)
    return {"rows", "option 'deterministic' keeps a row's sum on one worker"};
  if (option != "auto")
    return {option, "asked for by option 'sharding'"};
  if (!by_rows)
    return {"entries", "entries stand in no order of rows: equally many for each worker, and sums are merged"};
  return {"rows", "each row to one worker, heaviest ranges first to the least loaded; rows above a fair share are cut"};
}

/// Asks a backend about one worker's part of a sweep.
class Sweep {
public:
  Sweep(const Layout &layout, const PlanRequest &request, const kernels::Rates &rates)
      : layout_(layout), rank_(request.rank), backend_(*request.backends.front()),
        workers_(static_cast<int>(request.backends.size())), rates_(rates) {
    for (const i64 dim : layout.stored_dims)
      factors_.push_back(matrix(dim));
  }

  void run(Plan &plan) {
    std::vector<bool> computed(layout_.partition.size(), false);
    for (std::size_t m = 0; m < layout_.dims.size(); ++m) {
      const std::size_t g = group_of(layout_, static_cast<int>(m));
      ModePlan mode;
      if (layout_.partition[g].shared)
        through_partial(mode, static_cast<int>(m), g, computed[g]);
      else
        take(mode, alone(static_cast<int>(m), g), "");
      computed[g] = true;
      plan.seconds_mttkrp += mode.seconds;
      const kernels::Forecast update =
          backend_.forecast_update(layout_.stored_dims[m] / workers_ + 1, rank_, layout_.type, rates_);
      plan.seconds_update += update.seconds;
      most_bytes_ = std::max(most_bytes_, update.bytes);
      plan.modes.push_back(std::move(mode));
    }
  }
  /// Of memory that kernels take for a while, on one worker.
  double most_bytes() const noexcept { return most_bytes_; }

private:
  ConstMatrix matrix(i64 rows) const { return {nullptr, layout_.type, rows, rank_, rank_}; }

  bool by_rows() const { return layout_.format.what == "sorted" || layout_.format.what == "dense"; }

  kernels::Forecast forecast(const kernels::TensorView &x, int mode, std::span<const ConstMatrix> factors, i64 rows,
                             i64 entries, bool shares_rows) const {
    const ConstMatrix out = matrix(rows);
    kernels::MttkrpArgs args;
    args.mode = mode;
    args.factors = factors;
    args.out = {nullptr, out.type, out.rows, out.cols, out.ld};
    args.rows = shares_rows ? part_of({0, rows}, 0, workers_) : Range{0, rows};
    args.entries = shares_rows ? Range{0, entries} : part_of({0, entries}, 0, workers_);
    return backend_.forecast_mttkrp(x, args, rates_);
  }

  kernels::TensorView view(std::size_t group) const {
    if (layout_.format.what == "sorted") {
      const formats::CopySize &copy = layout_.copies[group];
      kernels::SortedView x;
      x.dims = copy.dims;
      x.mode = copy.mode;
      x.nnz = layout_.nnz;
      x.type = layout_.type;
      x.key_bytes = copy.key_bytes;
      x.rows = static_cast<i64>(copy.rows);
      x.tiles = static_cast<i64>(copy.tiles);
      return x;
    }
    if (layout_.format.what == "blco") {
      kernels::BlcoView x;
      x.dims = layout_.stored_dims;
      x.nnz = layout_.nnz;
      x.type = layout_.type;
      x.blocks = layout_.blocks;
      return x;
    }
    if (layout_.format.what == "coo")
      return kernels::CooView{layout_.stored_dims, layout_.nnz, layout_.type, nullptr, nullptr};
    return kernels::DenseView{layout_.stored_dims, layout_.type, nullptr};
  }

  kernels::Forecast alone(int mode, std::size_t group) const {
    const int at = layout_.format.what == "sorted" ? layout_.copies[group].mode : mode;
    return forecast(view(group), at, factors_, layout_.stored_dims[static_cast<std::size_t>(mode)], layout_.nnz,
                    by_rows());
  }

  void through_partial(ModePlan &mode, int m, std::size_t g, bool computed) {
    const GroupLayout &group = layout_.partition[g];
    if (!computed) { // the first mode of the group pays
      std::vector<i64> dims;
      std::vector<ConstMatrix> outside;
      int merged_mode = 0;
      for (int k = 0; k < static_cast<int>(layout_.dims.size()); ++k) {
        const bool inside = std::count(group.modes.begin(), group.modes.end(), k) > 0;
        if (inside && k != group.modes.front())
          continue;
        if (inside)
          merged_mode = static_cast<int>(dims.size());
        dims.push_back(inside ? group.cells : layout_.stored_dims[static_cast<std::size_t>(k)]);
        outside.push_back(matrix(dims.back()));
      }
      kernels::TensorView x = view(g);
      if (layout_.format.what == "dense")
        std::get<kernels::DenseView>(x).dims = dims;
      take(mode, forecast(x, merged_mode, outside, group.cells, layout_.nnz, true),
           fmt::format("partial product of modes {}: ", fmt::join(group.modes, ",")));
      mode.kernel += "; then ";
    }
    std::vector<i64> dims;
    std::vector<ConstMatrix> inside;
    for (const int k : group.modes) {
      dims.push_back(layout_.stored_dims[static_cast<std::size_t>(k)]);
      inside.push_back(matrix(dims.back()));
    }
    dims.push_back(group.cells);
    inside.push_back(matrix(group.cells));
    const auto place = static_cast<int>(std::find(group.modes.begin(), group.modes.end(), m) - group.modes.begin());
    const kernels::CooView cells{dims, group.cells, layout_.type, nullptr, nullptr};
    take(mode, forecast(cells, place, inside, dims[static_cast<std::size_t>(place)], group.cells, false),
         fmt::format("over {} cells: ", group.cells));
  }

  void take(ModePlan &mode, kernels::Forecast forecast, const std::string &prefix) {
    mode.kernel += prefix + forecast.kernel;
    mode.conflicts += (mode.conflicts.empty() || forecast.conflicts.empty() ? "" : "; then ") + forecast.conflicts;
    mode.seconds += forecast.seconds;
    most_bytes_ = std::max(most_bytes_, forecast.bytes);
  }

  const Layout &layout_;
  i64 rank_;
  const kernels::Backend &backend_;
  int workers_;
  kernels::Rates rates_;
  std::vector<ConstMatrix> factors_;
  double most_bytes_ = 0;
};

int threads_of(const PlanRequest &request) {
  int threads = 0;
  for (const auto &backend : request.backends)
    threads += backend->threads();
  return threads;
}

/// How workers would divide a mode if entries were spread evenly.
Division even_division(const Layout &l, std::size_t mode, int workers, const std::string &sharding) {
  const bool by_rows = l.format.what == "sorted" && !l.partition[group_of(l, static_cast<int>(mode))].shared;
  if (!by_rows || workers == 1)
    return divide_evenly(l.stored_dims[mode], l.nnz, workers);
  const RowCounts counts = RowCounts::even(l.stored_dims[mode], l.nnz);
  return sharding == "entries" ? divide_entries(counts, workers) : divide_rows(counts, workers, sharding == "auto");
}

void set_loads(Plan &plan, const Tensor *x, const PlanRequest &request) {
  const Layout &l = plan.layout;
  const std::string sharding = x != nullptr ? x->sharding() : request.options.text("sharding");
  const bool deterministic = request.options.integer("deterministic") != 0;
  const bool by_rows = l.format.what == "sorted" || l.format.what == "dense";
  std::optional<Sharding> of_tensor;
  if (x != nullptr)
    of_tensor.emplace(*x, plan.workers, deterministic);
  for (std::size_t m = 0; m < plan.modes.size(); ++m) {
    const std::size_t group = group_of(l, static_cast<int>(m));
    Division division;
    if (!of_tensor)
      division = even_division(l, m, plan.workers, deterministic ? "rows" : sharding);
    else
      division =
          l.partition[group].shared ? of_tensor->cells(static_cast<int>(group)) : of_tensor->rows(static_cast<int>(m));
    ModePlan &mode = plan.modes[m];
    mode.load.assign(division.load.begin(), division.load.end());
    if (!by_rows && (deterministic || sharding == "rows")) // each looks at all entries for its rows
      std::fill(mode.load.begin(), mode.load.end(), static_cast<double>(l.nnz));
    mode.split_rows = static_cast<i64>(division.split.size());
    mode.imbalance = division.imbalance();
  }
  plan.sharding = sharding_choice(by_rows, sharding, deterministic, plan.workers);
}

kernels::Rates rates_for(Plan &plan, const PlanRequest &request) {
  const double read = request.options.real("read_rate");
  const double operations = request.options.real("operation_rate");
  kernels::Rates rates;
  if (read == 0 || operations == 0)
    rates = request.backends.front()->rates();
  plan.rates_why =
      read == 0 && operations == 0 ? "measured now, once a process" : "measured, but for what options give";
  if (read > 0)
    rates.read = rates.near_rows = rates.far_rows = read;
  if (operations > 0)
    rates.operations = operations;
  if (read > 0 && operations > 0)
    plan.rates_why = "given by options 'read_rate' and 'operation_rate'";
  return rates;
}

Plan finish(Layout layout, const Tensor *x, const PlanRequest &request) {
  Plan plan;
  plan.layout = std::move(layout);
  plan.rank = request.rank;
  plan.workers = static_cast<int>(request.backends.size());
  plan.threads = threads_of(request);
  plan.devices = request.devices;
  const Layout &l = plan.layout;
  plan.available = host_memory(request.options, l.exists ? whole(l.bytes.stored) : 0);
  plan.rates = rates_for(plan, request);

  Sweep sweep(l, request, plan.rates);
  sweep.run(plan);
  set_loads(plan, x, request);

  SolverSizes sizes{l.dims,       l.stored_dims, l.type,
                    request.rank, plan.workers,  !request.options.text("checkpoint").empty()};
  for (const GroupLayout &group : l.partition)
    if (group.shared)
      sizes.cells = std::max(sizes.cells, static_cast<double>(group.cells));
  sizes.cell_bytes = l.cell_bytes;
  sizes.kernels = sweep.most_bytes();
  const SolverNeed need = solver_need(sizes);
  plan.host.tensor = whole(l.bytes.stored);
  plan.host.building = whole(l.bytes.building);
  if (request.backends.front()->memory() == nullptr) {
    plan.solver = need.together();
    plan.host.solver = plan.solver.total();
  } else {
    plan.solver = need.host;
    plan.host.solver = need.host.total();
    plan.device.tensor = plan.host.tensor;
    plan.device.solver = need.workers.total();
  }
  plan.fits = (l.exists ? plan.host.solver : plan.host.peak()) <= plan.available.bytes;
  return plan;
}

LayoutRequest layout_request(const PlanRequest &request) {
  if (request.rank < 1)
    throw_error(Status::shape, "rank = {}: expected rank >= 1", request.rank);
  return {request.options, request.rank, threads_of(request), host_memory(request.options, 0),
          request.backends.front()->memory() != nullptr};
}

} // namespace

i64 PlaceBytes::peak() const noexcept { return sum(tensor, std::max(building, solver)); }

Plan plan_of(const Tensor &x, const PlanRequest &request) {
  return finish(layout_of(x, layout_request(request)), &x, request);
}

Plan plan_of(std::span<const i64> dims, i64 nnz, ValueType type, const PlanRequest &request) {
  return finish(layout_of(dims, nnz, type, layout_request(request)), nullptr, request);
}

Plan plan_of(const EntriesView &entries, const PlanRequest &request) {
  return finish(layout_of(entries, layout_request(request)), nullptr, request);
}

Plan plan_of_dense(std::span<const i64> dims, ValueType type, const PlanRequest &request) {
  return finish(dense_layout(dims, type, layout_request(request)), nullptr, request);
}

} // namespace td::plan
