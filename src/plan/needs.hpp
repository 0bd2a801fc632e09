// What storing a tensor and fitting a model to it take, told from sizes alone.
#pragma once

#include <string>

#include "formats/footprint.hpp"
#include "plan/groups.hpp"
#include "plan/memory.hpp"

namespace td::plan {

/// How a tensor is stored, and why.
struct FormatChoice {
  std::string format;
  std::string why;
};

/// Of a sparse tensor: option "format", which "auto" decides: a copy sorted by each mode if these take at most a
/// quarter of `memory`, else BLCO; beyond formats::max_linear_bits, coordinates. Throws Status::unsupported for a
/// format that cannot hold these dims.
FormatChoice choose_format(std::span<const i64> dims, i64 nnz, ValueType type, const Options &options, int threads,
                           const HostMemory &memory);

/// What `format`, one of FormatChoice or "dense", takes.
formats::Footprint footprint_of(std::string_view format, std::span<const i64> dims, i64 nnz, ValueType type,
                                int threads);

/// Throws Status::host_memory, with what would need less, if a tensor does not fit.
void require_storage(std::string_view format, std::span<const i64> dims, i64 nnz, ValueType type, int threads,
                     const HostMemory &memory);

/// What CP-ALS takes besides the tensor.
struct SolverSizes {
  std::span<const i64> dims;
  ValueType type = ValueType::f64;
  i64 rank = 0;
  int workers = 1;
  bool checkpoint = false;
  const Groups *groups = nullptr; // or null: no mode shares anything
};
MemoryNeed solver_need(const SolverSizes &sizes);
void require_solver(const SolverSizes &sizes, const HostMemory &memory);

} // namespace td::plan
