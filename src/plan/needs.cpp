#include "plan/needs.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "formats/formats.hpp"

namespace td::plan {

FormatChoice choose_format(std::span<const i64> dims, i64 nnz, ValueType type, const Options &options, int threads,
                           const HostMemory &memory) {
  const std::string wanted = options.text("format");
  const int bits = formats::linear_bits(dims);
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
  const double sorted = formats::sorted_footprint(dims, nnz, type, threads).stored;
  const double quarter = static_cast<double>(memory.bytes) / 4;
  const bool fits = sorted <= quarter;
  return {fits ? "sorted" : "blco",
          fmt::format("a copy sorted by each mode is fastest and takes {}, {} a quarter of the memory that there is",
                      size_text(static_cast<i64>(std::min(sorted, 1e18))), fits ? "at most" : "more than")};
}

formats::Footprint footprint_of(std::string_view format, std::span<const i64> dims, i64 nnz, ValueType type,
                                int threads) {
  if (format == "dense")
    return formats::dense_footprint(dims, type);
  if (format == "coo")
    return formats::coo_footprint(dims, nnz, type);
  if (format == "blco")
    return formats::blco_footprint(dims, nnz, type);
  return formats::sorted_footprint(dims, nnz, type, threads);
}

void require_storage(std::string_view format, std::span<const i64> dims, i64 nnz, ValueType type, int threads,
                     const HostMemory &memory) {
  const auto footprint = footprint_of(format, dims, nnz, type, threads);
  MemoryNeed need;
  need.add("the tensor", footprint.stored);
  need.add("building it", footprint.building);
  std::string advice;
  if (format == "sorted") {
    const auto less = formats::blco_footprint(dims, nnz, type);
    MemoryNeed blco;
    blco.add("", less.stored + less.building);
    advice = fmt::format("format blco needs {}", size_text(blco.total()));
  } else if (type == ValueType::f64) {
    advice = "values in f32 need less";
  }
  require_memory(fmt::format("a {} tensor of {} {}", format, nnz, format == "dense" ? "elements" : "entries"), need,
                 memory, advice);
}

MemoryNeed solver_need(const SolverSizes &sizes) {
  const auto rank = static_cast<double>(sizes.rank);
  const auto element = static_cast<double>(size_of(sizes.type));
  const double row = rank * element;
  const double workers = sizes.workers;
  double rows = 0;
  for (const i64 dim : sizes.dims)
    rows += static_cast<double>(dim);
  const auto longest = static_cast<double>(*std::max_element(sizes.dims.begin(), sizes.dims.end()));
  MemoryNeed need;
  need.add("the model", rows * row + 8 * rank);
  need.add(sizes.workers == 1 ? "the factors at work" : "each worker's copy of the factors", workers * rows * row);
  need.add("the result of MTTKRP", workers * longest * row);
  need.add("Gram matrices and normal equations",
           workers * (static_cast<double>(sizes.dims.size()) + 2) * rank * rank * 8);
  double partial = 0;
  double cells = 0;
  for (int g = 0; sizes.groups != nullptr && g < sizes.groups->count(); ++g) {
    if (!sizes.groups->shared(g, sizes.rank))
      continue;
    const auto count = static_cast<double>(sizes.groups->cell_count(g));
    partial = std::max(partial, count);
    cells += count * (8 * static_cast<double>(sizes.groups->modes(g).size() + 1) + element);
  }
  if (partial > 0) {
    need.add("partial products", workers * partial * row);
    need.add("the coordinates of their cells", cells);
  }
  if (sizes.checkpoint)
    need.add("a checkpoint", rows * row);
  return need;
}

void require_solver(const SolverSizes &sizes, const HostMemory &memory) {
  std::string advice = "a smaller rank needs less";
  if (sizes.workers > 1)
    advice += ", and so do fewer workers";
  require_memory(
      fmt::format("CP-ALS of rank {} with {} worker{}", sizes.rank, sizes.workers, sizes.workers == 1 ? "" : "s"),
      solver_need(sizes), memory, advice);
}

} // namespace td::plan
