#include "plan/needs.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/sentence.hpp"
#include "formats/formats.hpp"

namespace td::plan {

Choice choose_format(const formats::EntryShape &x, const Options &options, const formats::TileRule &tiles, int threads,
                     const HostMemory &memory) {
  const std::string wanted = options.text("format");
  const int bits = formats::linear_bits(x.dims);
  if (bits > formats::max_linear_bits) {
    if (wanted != "auto" && wanted != "coo")
      throw_error(Status::unsupported,
                  "format {}: the indices of all modes together need {} bits, expected at most {}; format coo has no "
                  "such limit",
                  wanted, bits, formats::max_linear_bits);
    return {"coo", fmt::format("the indices of all modes together need {} bits, more than the {} of a linearized key",
                               bits, formats::max_linear_bits)};
  }
  if (wanted != "auto")
    return {wanted, "asked for by option 'format'"};
  const double sorted = formats::sorted_footprint(x, tiles, threads).stored;
  const double quarter = static_cast<double>(memory.bytes) / 4;
  const bool fits = sorted <= quarter;
  return {fits ? "sorted" : "blco",
          fmt::format("a copy sorted by each mode is fastest and takes {}, {} a quarter of the memory that there is",
                      size_text(saturated(sorted)), fits ? "at most" : "more than")};
}

formats::Footprint footprint_of(std::string_view format, const formats::EntryShape &x, const formats::TileRule &tiles,
                                int threads) {
  if (format == "dense")
    return formats::dense_footprint(x.dims, x.type);
  if (format == "coo")
    return formats::coo_footprint(x, threads);
  if (format == "blco")
    return formats::blco_footprint(x, threads);
  return formats::sorted_footprint(x, tiles, threads);
}

void require_storage(std::string_view format, const formats::EntryShape &x, const formats::TileRule &tiles, int threads,
                     const HostMemory &memory) {
  const auto footprint = footprint_of(format, x, tiles, threads);
  MemoryNeed need;
  need.add("the tensor", footprint.stored);
  need.add("building it", footprint.building);
  std::string advice;
  if (format == "sorted") {
    const auto less = formats::blco_footprint(x, threads);
    MemoryNeed blco;
    blco.add("", less.stored + less.building);
    advice = fmt::format("format blco needs {}", size_text(blco.total()));
  } else if (x.type == ValueType::f64) {
    advice = "values in f32 need less";
  }
  require_memory(
      fmt::format("a {} tensor of {}", format,
                  format == "dense" ? count_text(x.nnz, "element", "elements") : count_text(x.nnz, "entry", "entries")),
      need, memory, advice);
}

Decoded decoded_bytes(std::string_view format, const formats::EntryShape &x, int threads) {
  if (format == "coo" || format == "dense")
    return {};
  const double coordinates =
      static_cast<double>(x.nnz) * (8 * static_cast<double>(x.dims.size()) + static_cast<double>(size_of(x.type)));
  if (format == "blco") // in canonical order
    return {coordinates, coordinates};
  const auto sorting = formats::coo_footprint(x, threads); // beside coordinates in the order of a copy
  return {coordinates, coordinates + sorting.stored + sorting.building};
}

double cell_bytes_of(const Groups &groups, bool sparse, ValueType type, i64 rank) {
  double bytes = 0;
  for (int g = 0; g < groups.count() && !sparse; ++g) // of a sparse tensor they are stored with it
    if (groups.shared(g, rank))
      bytes += static_cast<double>(groups.cell_count(g)) *
               (8 * static_cast<double>(groups.modes(g).size() + 1) + static_cast<double>(size_of(type)));
  return bytes;
}

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
  const double model = sum(sizes.dims) * row;
  const double stored = sum(sizes.stored_dims) * row;
  const auto longest = static_cast<double>(*std::max_element(sizes.stored_dims.begin(), sizes.stored_dims.end()));
  SolverNeed need;
  need.host.add("the model", model + 8 * rank);
  need.host.add("the coordinates of cells", sizes.cell_bytes);
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
                   workers * (static_cast<double>(sizes.dims.size()) + 4) * rank * rank * 8);
  if (sizes.qr) {
    need.workers.add("columns of orthogonal factors", workers * stored);
    need.host.add("QR decompositions", workers * qr_bytes(sizes));
  }
  need.workers.add("partial products", workers * sizes.cells * row);
  need.workers.add("sums on their way", workers * sizes.kernels);
  // A start is made before the sweeps, and for all rows, those without entries too.
  const double start = std::max(model, sizes.start);
  if (const auto total = static_cast<double>(need.workers.total()); start > total)
    need.workers.add("making the start", start - total);
  need.host.add("making the start", sizes.start_host);
  return need;
}

} // namespace td::plan
