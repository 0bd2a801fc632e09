#include "plan/solver_sizes.hpp"

#include <algorithm>
#include <cmath>

#include "comm/communicator.hpp"
#include "plan/devices.hpp"
#include "plan/exchange.hpp"
#include "plan/nvecs.hpp"

namespace td::plan {

namespace {

/// Bytes of the columns that processes multiply for a start by eigenvectors, three times on the host.
double columns_bytes(const Layout &l, i64 rank) {
  const i64 longest = *std::max_element(l.dims.begin(), l.dims.end());
  const i64 columns = std::max(identity_columns, subspace_columns(longest, std::min(longest, rank)));
  return 3 * 8 * static_cast<double>(longest) * 2 * static_cast<double>(columns);
}

/// Adds rows with where they begin, tiles, and what of each tile a worker has.
void add_part_lists(SolverSizes &sizes, const Layout &l, int workers) {
  for (const formats::CopySize &copy : l.copies)
    sizes.part_lists += 16 * copy.rows + workers * (copy.tiles > 1 ? 64 * copy.tiles : 0);
}

/// Bytes of the host for rows of a device that all processes get, as staged_communicator brings them to the functions
/// of the caller: rows of all, copies of own ones for each other process, and what comes of theirs.
double staged_for_all(i64 rows, i64 row_bytes, int processes) {
  const auto some = static_cast<double>(staged_bytes(rows, row_bytes));
  return 2 * some + std::min((processes - 1) * some, static_cast<double>(rows) * static_cast<double>(row_bytes));
}

/// The same where each process has all of the tensor: rows that go to each other process, and those of all that come.
/// GPUs take what several in one process do: numbers of each, and on the host what takes that way, entries too.
void add_whole(SolverSizes &sizes, const Layout &l, const PlanRequest &request, const Asked &asked) {
  const i64 longest = *std::max_element(l.stored_dims.begin(), l.stored_dims.end());
  const auto row = static_cast<double>(request.rank) * static_cast<double>(size_of(l.type));
  if (!is_gpu(request)) {
    sizes.staged = 2 * static_cast<double>(*std::max_element(l.dims.begin(), l.dims.end())) * row;
    return;
  }
  const int processes = l.shared.processes;
  const kernels::Exchange way = request.backends.front()->exchange();
  if (way != kernels::Exchange::host)
    sizes.exchanged = static_cast<double>(exchange_bytes(
        kernels::Exchange::nccl, processes,
        saturated(static_cast<double>(request.rank) * (static_cast<double>(request.rank) + 2)), 0, saturated(row)));
  if (way != kernels::Exchange::nccl) {
    sizes.staged = staged_for_all(std::max(longest, saturated(sizes.cells)), saturated(row), processes);
    if (holding_of(l, asked.tensor.sharding, asked.solver.deterministic, processes, true) == Holding::gathered)
      sizes.staged = std::max(sizes.staged, staged_for_all(gathered_entries(l), 8, processes));
  }
  add_part_lists(sizes, l, processes);
}

/// What processes exchange takes, of which each has a part of the tensor: sums that come, or rows that go; or the rows
/// of a block of the model with their numbers. Of GPUs rows are on them, with their lists and some of a start, and on
/// the host where that is the way, and as they come to or from a block.
void add_shared(SolverSizes &sizes, const Layout &l, const PlanRequest &request, const Asked &asked) {
  const auto rank = static_cast<double>(request.rank);
  const double row = rank * static_cast<double>(size_of(l.type));
  const auto longest = static_cast<double>(*std::max_element(l.dims.begin(), l.dims.end()));
  sizes.block = {0, l.shared.blocks()};
  sizes.gathers = l.shared.processes > 1 && !asked.solver.distributed;
  i64 most = 0, both = 0, lists = 0; // rows
  for (std::size_t m = 0; m < l.dims.size(); ++m) {
    most = std::max(most, l.shared.shared[m]);
    both = std::max(both, l.shared.shared[m] + l.shared.lent[m]);
    lists += l.shared.shared[m];
  }
  const double settled =
      std::min(std::ceil(longest / l.shared.blocks()), static_cast<double>(l.shared.entries)) * (row + 16);
  const i64 row_bytes = saturated(rank * 8);
  if (!is_gpu(request)) {
    sizes.staged = std::max(static_cast<double>(most) * rank * 8, settled);
    if (request.backends.front()->exchange() == kernels::Exchange::host) // beside others' GPUs
      sizes.staged += static_cast<double>(staged_bytes(both, row_bytes));
    return;
  }
  const double numbers = 8 * rank * (rank + 2); // a Gram matrix, with largest magnitudes and inner products
  sizes.exchanged =
      static_cast<double>(most) * rank * 8 + 8 * static_cast<double>(lists) + l.shared.processes * numbers;
  sizes.staged = static_cast<double>(*std::max_element(l.stored_dims.begin(), l.stored_dims.end())) * row + settled;
  if (request.backends.front()->exchange() != kernels::Exchange::nccl)
    sizes.staged += static_cast<double>(staged_bytes(both, row_bytes));
  for (const i64 dim : l.dims)
    sizes.kernels = std::max(sizes.kernels, start_rows_bytes(sizes.block.of(dim).size(), row));
  sizes.apart = true;
}

} // namespace

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
    add_part_lists(sizes, l, sizes.workers);
  }
  if (l.is_whole_on_each())
    add_whole(sizes, l, request, asked);
  else if (!l.shared.shared.empty())
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

} // namespace td::plan
