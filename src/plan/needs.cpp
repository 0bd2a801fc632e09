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
                      size_text(static_cast<i64>(std::min(sorted, 1e18))), fits ? "at most" : "more than")};
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
                     workers * sum(sizes.stored_dims) * static_cast<double>(4 * kernels::gathered_columns(sizes.rank)));
  need.workers.add("Gram matrices and normal equations",
                   workers * (static_cast<double>(sizes.dims.size()) + 4) * rank * rank * 8);
  need.workers.add("partial products", workers * sizes.cells * row);
  need.workers.add("sums on their way", workers * sizes.kernels);
  // A start is made for all rows, those without entries too.
  if (const auto total = static_cast<double>(need.workers.total()); model > total)
    need.workers.add("making the start", model - total);
  return need;
}

} // namespace td::plan
