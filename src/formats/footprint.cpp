#include "formats/footprint.hpp"

#include <algorithm>
#include <cmath>

#include "formats/formats.hpp"
#include "formats/key.hpp"
#include "formats/parts.hpp"

namespace td::formats {

namespace {

double value_bytes(ValueType type) { return static_cast<double>(size_of(type)); }

/// Packed keys and values.
double packed_bytes(std::span<const i64> dims, i64 nnz, ValueType type) {
  return static_cast<double>(nnz) * (key_bytes_for(linear_bits(dims)) + value_bytes(type));
}

} // namespace

double expected_rows(double rows, double entries) { return rows * -std::expm1(-entries / rows); }

Footprint coo_footprint(std::span<const i64> dims, i64 nnz, ValueType type) {
  const auto n = static_cast<double>(nnz);
  Footprint f;
  f.stored = n * (8 * static_cast<double>(dims.size()) + value_bytes(type));
  if (linear_bits(dims) <= max_linear_bits) {
    const double packed = packed_bytes(dims, nnz, type);
    f.building = std::max(2 * packed - f.stored, packed); // sorting needs the pairs twice, unpacking once
  } else {
    f.building = std::max(4 * 8 * n - f.stored, 2 * 8 * n); // an order and keys, twice; then the order and run borders
  }
  return f;
}

Footprint blco_footprint(std::span<const i64> dims, i64 nnz, ValueType type) {
  const auto n = static_cast<double>(nnz);
  const auto order = static_cast<double>(dims.size());
  const int more_bits = std::max(linear_bits(dims) - 64, 0); // what a block's entries share
  const double blocks = std::min(n, std::exp2(more_bits));
  Footprint f;
  f.stored = n * (8 + value_bytes(type)) + blocks * 8 * (1 + order);
  const double packed = packed_bytes(dims, nnz, type);
  f.building = std::max(2 * packed - f.stored, more_bits > 0 ? 16 * n : 0.0); // wide keys stand beside the new ones
  return f;
}

Footprint sorted_footprint(std::span<const i64> dims, i64 nnz, ValueType type, int threads) {
  const auto n = static_cast<double>(nnz);
  const double packed = packed_bytes(dims, nnz, type);
  const double parts = parts_for(nnz, threads);
  Footprint f;
  double peak = 2 * packed;
  for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode) {
    const i64 dim = dims[static_cast<std::size_t>(mode)];
    const SortedShape shape = sorted_shape(dims, mode, nnz);
    const double places = shape.tiles * static_cast<double>(dim);
    const double rows = expected_rows(places, n);
    f.stored += n * (shape.key_bytes + value_bytes(type)) + 16 * rows;
    double temporary = 0;
    if (const double most_parts = std::max(1024.0, 2 * n) / places; most_parts >= 1 || shape.tiles > 1)
      temporary = 8 * places * std::clamp(std::floor(most_parts), 1.0, parts);
    else
      temporary = n * (2 * key_bytes_for(linear_bits(dims)) + value_bytes(type));
    if (shape.tiles > 1) {
      f.stored += shape.tiles * 8 * static_cast<double>(dims.size() + 2);
      temporary += 3 * 8 * static_cast<double>(dim);
    }
    peak = std::max(peak, packed + f.stored + temporary);
  }
  f.building = peak - f.stored;
  return f;
}

Footprint dense_footprint(std::span<const i64> dims, ValueType type) {
  double bytes = value_bytes(type);
  for (const i64 dim : dims)
    bytes *= static_cast<double>(dim);
  return {bytes, 0};
}

} // namespace td::formats
