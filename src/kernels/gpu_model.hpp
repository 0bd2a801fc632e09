// The cost model of a GPU. What MTTKRP over a sorted copy costs stands here once: tiles are decided by it, where no GPU
// need be, and cuda/prediction.cpp predicts by it; what cuda/sorted_layout.cpp launches has its constants from here.
//
// Decisions go by the sizes of a chip and by nominal rates, never by rates that were measured on the machine: how a
// tensor is stored must not depend on how a measurement came out. Predictions go by the rates measured on the GPU.
// Constants were set by bench/gpu_mttkrp on an H200 (bench/results).
#pragma once

#include <cmath>

#include "kernels/tuning.hpp"

namespace td::kernels::gpu {

inline constexpr double near_bytes =
    128; // a cycle of a multiprocessor, from shared memory: the unit of costs in cycles

/// Bytes that staged rows leave to the first-level cache where rows of other factors come from memory: these have to
/// arrive somewhere. With 180 KB of an H200's 228 staged, walks took up to 1.3 times as long as with none.
inline constexpr i64 room_for_far_rows = i64{64} << 10;

/// An H200's rates; rows arrive at as many multiprocessors as the chip has, from a memory as fast as its own.
Rates nominal_rates(const Chip &chip);

/// Bytes a second from pinned host memory: over PCIe 5 with 16 lanes.
inline constexpr double nominal_host_rate = 50e9;

/// How many times as long as over sorted copies MTTKRP over one copy in BLCO takes (bench/results,
/// 2026-11-21-NVIDIA-H200: 1.2 to 2.5 times).
inline constexpr double blco_times_sorted = 2;

/// Whether rows that take so many bytes together come from memory, and not from the second-level cache.
constexpr bool come_from_memory(double bytes, const Chip &chip) noexcept {
  return bytes > static_cast<double>(chip.cache_bytes);
}

/// Bytes a second of rows in no order that lie about in so many bytes: between the second-level cache, which others
/// use, too, and memory by the logarithm.
double row_rate(double bytes, const Rates &rates, const Chip &chip);

/// How many of some rows entries refer to, if all rows are equally likely.
inline double expected_rows(double rows, double entries) { return rows * -std::expm1(-entries / rows); }

/// Whether it pays to read rows from copies in f32: a column of a factor takes 20 bytes a row to copy (two passes read
/// 8, one writes 4), and what an entry fetches of it is 4 bytes less.
constexpr bool pays_to_gather(std::span<const i64> dims, i64 nnz) noexcept {
  double rows = 0;
  for (const i64 dim : dims)
    rows += static_cast<double>(dim);
  return 4 * static_cast<double>(nnz) * static_cast<double>(dims.size() - 1) > 20 * rows;
}

/// The types of the numbers in rows of factors and of the terms that are made of them.
struct RowTypes {
  ValueType rows = ValueType::f64;
  ValueType terms = ValueType::f64;

  bool widened() const noexcept { return rows != terms; }
};

/// What an entry's rows of the other factors take, in seconds of all multiprocessors.
struct Fetches {
  double staged_bytes = 0; // of the rows in shared memory, together
  double near = 0;         // for those in shared memory
  double far = 0;          // for the others
  double least = 0;        // for both, wherever they come from

  /// Adds a mode of which entries read `fetched` bytes of a row; `bytes` is what the rows that a tile refers to take.
  void add_staged(double fetched, double bytes, RowTypes types, const Rates &rates);
  void add_far(double fetched, double bytes, RowTypes types, const Rates &rates, const Chip &chip);
};

/// Seconds in which blocks start and find their tiles, and fill their staged rows.
double fill_seconds(const Fetches &fetches, double tiles, double blocks, const Rates &rates);

/// Seconds in which so many segments of rows end and are added to the rows.
double segment_seconds(double segments, const Rates &rates);

/// What MTTKRP in a mode of a sorted copy costs at rows of 32 numbers: seconds at nominal rates, without what is the
/// same for all tiles.
class SortedCost {
public:
  SortedCost(const Chip &chip, std::span<const i64> dims, int mode, i64 nnz, RowTypes types);

  /// The most bits of a mode whose rows can be staged.
  int most_bits() const;
  /// Seconds with tiles in which the index of each other mode has so many bits.
  double operator()(std::span<const int> bits) const;

private:
  Chip chip_;
  Rates rates_;
  std::span<const i64> dims_;
  std::size_t mode_;
  double nnz_;
  RowTypes types_;
  double row_bytes_;
  double staged_bytes_;
};

} // namespace td::kernels::gpu
