#include "plan/needs.hpp"

#include <algorithm>

#include "formats/formats.hpp"

namespace td::plan {

i64 span_entries(i64 nnz) { return std::clamp<i64>(nnz / 16, i64{1} << 20, i64{1} << 22); }

MemoryNeed SolverNeed::together() const {
  MemoryNeed all = host;
  for (const MemoryNeed::Item &item : workers.items())
    all.add(item.what, static_cast<double>(item.bytes));
  return all;
}

namespace {

/// What solvers/qr_update.cpp holds on the host: orthogonal factors, one of them on its way, three matrices with a row
/// for each combination of their columns, and four with the rows of the result.
double qr_bytes(const SolverSizes &sizes) {
  const auto rank = static_cast<double>(sizes.rank);
  double rows = 0, all = 1, fewest = rank;
  for (const i64 dim : sizes.stored_dims) {
    const double columns = std::min(static_cast<double>(dim), rank);
    rows += static_cast<double>(dim);
    all *= columns;
    fewest = std::min(fewest, columns);
  }
  const auto longest = static_cast<double>(*std::max_element(sizes.stored_dims.begin(), sizes.stored_dims.end()));
  return 8 * rank * (rows + 2 * longest + 3 * (all / fewest + rank) + 4 * longest);
}

} // namespace

SolverNeed solver_need(const SolverSizes &sizes) {
  const auto rank = static_cast<double>(sizes.rank);
  const auto element = static_cast<double>(size_of(sizes.type));
  const double row = rank * element;
  const double workers = sizes.workers;
  const auto sum = [](std::span<const i64> dims) {
    double rows = 0;
    for (const i64 dim : dims)
      rows += static_cast<double>(dim);
    return rows;
  };
  std::vector<i64> kept;
  for (const i64 dim : sizes.dims)
    kept.push_back(sizes.block.of(dim).size());
  const double model = sum(kept) * row;
  const double stored = sum(sizes.stored_dims) * row;
  const auto longest = static_cast<double>(*std::max_element(sizes.stored_dims.begin(), sizes.stored_dims.end()));
  SolverNeed need;
  need.host.add("the model", model + 8 * rank);
  if (sizes.checkpoint)
    need.host.add("a checkpoint", 2 * model);
  need.workers.add(sizes.workers == 1 ? "the factors at work" : "each worker's copy of the factors", workers * stored);
  need.workers.add("the result of MTTKRP", workers * longest * row);
  if (sizes.f64_sums)
    need.workers.add("sums in f64", workers * longest * rank * 8);
  if (sizes.f32_rows)
    need.workers.add("copies of the factors in f32",
                     workers * sum(sizes.stored_dims) * 4 *
                         static_cast<double>(kernels::gathered_columns(std::min(sizes.rank, i64{1} << 62))));
  need.workers.add("Gram matrices and normal equations",
                   workers * (static_cast<double>(sizes.dims.size()) + 4) * rank * (rank + 1) * 8);
  if (sizes.many_ranges)
    need.workers.add("sums over several ranges of rows",
                     workers * static_cast<double>(most_parts) * rank * (rank + 2) * 8);
  if (sizes.solve == Solve::qr) {
    need.workers.add("columns of orthogonal factors", workers * stored);
    need.host.add("QR decompositions", workers * qr_bytes(sizes));
  }
  need.host.add("rows on their way between workers", workers * sizes.staged);
  need.host.add("lists of workers' rows", sizes.part_lists);
  need.workers.add("what other workers have, on its way", workers * sizes.exchanged);
  need.workers.add("partial products", workers * sizes.cells * row);
  need.workers.add("sums on their way", workers * sizes.kernels);
  // A start is made before the sweeps, and for all rows, those without entries too.
  const double start = std::max(model, sizes.start);
  if (const auto total = static_cast<double>(need.workers.total()); start > total)
    need.workers.add("making the start", start - total);
  need.host.add("making the start", sizes.start_host);
  if (sizes.gathers) { // when workers have freed what is theirs
    const double all = sum(sizes.dims) * row;
    need.host.add("all rows of the model",
                  std::max(0.0, all - (sizes.apart ? sizes.staged : static_cast<double>(need.workers.total()))));
  }
  return need;
}

} // namespace td::plan
