// What storing a tensor and fitting a model to it take, told from sizes alone.
#pragma once

#include <string>

#include "core/memory.hpp"
#include "formats/footprint.hpp"
#include "plan/groups.hpp"

namespace td::plan {

/// What was chosen, and why.
struct Choice {
  std::string what;
  std::string why;
};

/// How a sparse tensor is stored: option "format", which "auto" decides: a copy sorted by each mode if these take at
/// most a quarter of `memory`, else BLCO; beyond formats::max_linear_bits, coordinates. Throws Status::unsupported for
/// a format that cannot hold these dims.
Choice choose_format(const formats::EntryShape &x, const Options &options, const formats::TileRule &tiles, int threads,
                     const HostMemory &memory);

/// What `format`, one that choose_format gives or "dense", takes.
formats::Footprint footprint_of(std::string_view format, const formats::EntryShape &x, const formats::TileRule &tiles,
                                int threads);

/// Throws Status::host_memory, with what would need less, if a tensor does not fit.
void require_storage(std::string_view format, const formats::EntryShape &x, const formats::TileRule &tiles, int threads,
                     const HostMemory &memory);

/// What coordinates take that are decoded from a format: what stays, and what is there at most meanwhile.
struct Decoded {
  double kept = 0;
  double peak = 0;
};
Decoded decoded_bytes(std::string_view format, const formats::EntryShape &x, int threads);

/// What CP-ALS takes besides the tensor.
struct SolverSizes {
  std::span<const i64> dims;        // of the start and of the model
  std::span<const i64> stored_dims; // of what workers work on
  ValueType type = ValueType::f64;
  i64 rank = 0;
  int workers = 1;
  bool checkpoint = false;
  bool f64_sums = false; // of an f32 tensor
  bool f32_rows = false; // of an f64 tensor
  bool qr = false;       // option "solve"
  double cells = 0;      // rows of the largest partial product
  double cell_bytes = 0; // coordinates of cells that are made when they are first needed
  double kernels = 0;    // what a worker's kernels take for a while
  double start = 0;      // what making the start takes besides it, where workers' memory is
  double start_host = 0; // the same on the host, where that is another place
};

/// SolverSizes::cell_bytes of a tensor with such groups.
double cell_bytes_of(const Groups &groups, bool sparse, ValueType type, i64 rank);

/// What is needed at the worst moment: in workers' own memory, and in that of the host for what they share.
struct SolverNeed {
  MemoryNeed host;
  MemoryNeed workers;
  /// Where workers are in host memory.
  MemoryNeed together() const;
};
SolverNeed solver_need(const SolverSizes &sizes);

} // namespace td::plan
