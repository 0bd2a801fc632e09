#include "kernels/cpu_model.hpp"

#include <algorithm>
#include <cmath>

namespace td::kernels::cpu {

namespace {

/// Bytes a second of rows that lie about in so many bytes: between the rates that are known by the logarithm.
double row_rate(double bytes, const Rates &rates) {
  const auto between = [bytes](double from, double rate, double to, double rate_there) {
    const double part = std::clamp(std::log(bytes / from) / std::log(to / from), 0.0, 1.0);
    return 1 / ((1 - part) / rate + part / rate_there);
  };
  return bytes < middle_bytes ? between(near_bytes, rates.near_rows, middle_bytes, rates.middle_rows)
                              : between(middle_bytes, rates.middle_rows, far_bytes, rates.far_rows);
}

} // namespace

Walk walk_over(const SortedView &x, ValueType type) {
  Walk walk{x.dims,
            x.mode,
            static_cast<double>(x.nnz),
            static_cast<double>(x.key_bytes) + static_cast<double>(size_of(type)),
            0,
            static_cast<double>(x.rows)};
  for (int m = 0; m < static_cast<int>(x.dims.size()) && x.tiles > 1; ++m)
    if (m != x.mode)
      walk.tile_rows += static_cast<double>(x.rows_in_tile(m));
  return walk;
}

Walk walk_in_no_order(std::span<const i64> dims, int mode, i64 nnz, i64 entry_bytes) {
  const i64 rows = dims[static_cast<std::size_t>(mode)];
  return {dims, mode, static_cast<double>(nnz), static_cast<double>(entry_bytes), 0, static_cast<double>(rows)};
}

double seconds_of(const Walk &walk, i64 rank, i64 columns, ValueType type, const Rates &rates) {
  if (!(rates.read > 0 && rates.near_rows > 0 && rates.middle_rows > 0 && rates.far_rows > 0 && rates.operations > 0))
    return 0;
  const auto element = static_cast<double>(size_of(type));
  const double row = static_cast<double>(rank) * element;
  const auto width = static_cast<double>(columns);
  double rows = 0;
  for (std::size_t m = 0; m < walk.dims.size(); ++m)
    if (m != static_cast<std::size_t>(walk.mode)) {
      const double all = static_cast<double>(walk.dims[m]) * row;
      const double there = walk.tile_rows > 0 ? std::min(all, walk.tile_rows * row) : all;
      rows += walk.entries * width * element / row_rate(there, rates);
    }
  const double operations = rates.operations * (type == ValueType::f32 ? 2 : 1);
  const double arithmetic = walk.entries * width * static_cast<double>(walk.dims.size()) / operations;
  return std::max(walk.entries * walk.entry_bytes / rates.read, rows + arithmetic) + 2 * walk.sums * row / rates.read;
}

} // namespace td::kernels::cpu
