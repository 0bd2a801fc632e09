// This header predicts from sizes alone what fitting a model to a tensor takes.
#pragma once

#include <algorithm>

#include "core/ktensor.hpp"
#include "core/memory.hpp"
#include "plan/groups.hpp"

namespace td::plan {

/// Entries worked on at once where the order of sums counts. The same for a form wherever it is, so that sums do not
/// depend on how much of it a device has room for.
i64 span_entries(i64 nnz);

/// Sums over several ranges of rows that wait to be combined.
inline constexpr i64 most_parts = 8;

/// Rows of a start that are multiplied with themselves at a time, where they are no rows of what is stored.
inline constexpr i64 start_rows_at_once = 65536;
/// What that takes of a start with so many rows that are not stored, with their list and their way to a device.
inline double start_rows_bytes(i64 rows, double row_bytes) {
  const auto some = static_cast<double>(std::min(rows, start_rows_at_once));
  return some * (row_bytes + 8) + std::min(some * row_bytes, 1048576.0);
}

/// What CP-ALS takes besides the tensor.
struct SolverSizes {
  std::span<const i64> dims;        // of the start and of the model
  std::span<const i64> stored_dims; // of what workers work on
  ValueType type = ValueType::f64;
  i64 rank = 0;
  int workers = 1;
  bool checkpoint = false;
  bool f64_sums = false;       // of an f32 tensor
  bool f32_rows = false;       // of an f64 tensor
  Solve solve = Solve::normal; // option "solve"
  bool many_ranges = false;    // a worker's rows of a mode may be several ranges
  double cells = 0;            // rows of the largest partial product
  double kernels = 0;          // workspace of a worker's kernels
  double start = 0;            // what making the start takes besides it, where workers' memory is
  double exchanged = 0;        // what other workers have, on its way to one, on its device
  double staged = 0;           // what rows on their way between workers take on the host, of each
  double start_host = 0;       // the same on the host, where that is another place
  double part_lists = 0;       // on the host, of the rows of all workers' parts
  RowBlock block = {};         // of the start and of the model that a process has
  bool gathers = false;        // it has all rows of the model in the end
  bool apart = false;          // that is not in the workers' memory
};

/// What is needed at the worst moment: in workers' own memory, and in that of the host for what they share.
struct SolverNeed {
  MemoryNeed host;
  MemoryNeed workers;
  /// The two are one where workers are in host memory.
  MemoryNeed together() const;
};
SolverNeed solver_need(const SolverSizes &sizes);

} // namespace td::plan
