#include "kernels/gpu_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace td::kernels::gpu {

namespace {

constexpr double rank = 32;
constexpr i64 room_for_sums = i64{35} << 10; // of shared memory, which groups of threads share, and to spare
constexpr double f32_row = 1.6;              // cycles at least
constexpr double mixed_row = 2.8;            // at least, where its numbers are widened
constexpr double uneven = 4;                 // as many tiles as others has a multiprocessor that has the emptiest

/// What one row takes at least, wherever it comes from.
double least_cycles(ValueType row_type, ValueType term_type) {
  if (row_type != term_type)
    return mixed_row;
  return row_type == ValueType::f32 ? f32_row : 0;
}

} // namespace

SortedCost::SortedCost(const Chip &chip, std::span<const i64> dims, int mode, i64 nnz, ValueType row_type,
                       ValueType term_type)
    : chip_(chip), dims_(dims), mode_(static_cast<std::size_t>(mode)), nnz_(static_cast<double>(nnz)),
      row_bytes_(rank * static_cast<double>(size_of(row_type))), least_(least_cycles(row_type, term_type)),
      staged_bytes_(static_cast<double>(chip.shared_bytes - room_for_sums)) {}

int SortedCost::most_bits() const { return std::ilogb(staged_bytes_ / row_bytes_); }

/// Bytes a cycle of rows that take so many together: from an H200's second-level cache, 8.5 TB/s over 132
/// multiprocessors; of as many as it holds some miss it, of more most do.
double SortedCost::far_bytes(double together) const {
  const double cached = cached_bytes(chip_);
  return together <= cached / 2 ? 36.6 : together <= cached ? 32 : 21.3;
}

double SortedCost::operator()(std::span<const int> bits) const {
  double tiles = 1;
  std::array<double, max_order> rows; // of each other mode that a tile refers to; many are tried: no memory for each
  std::size_t others = 0;
  for (std::size_t m = 0; m < dims_.size(); ++m)
    if (m != mode_) {
      tiles *= static_cast<double>(((dims_[m] - 1) >> bits[m]) + 1);
      rows[others++] = static_cast<double>(std::min(static_cast<u64>(dims_[m]), u64{1} << bits[m]));
    }
  std::sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(others));
  const double longest = others > 0 ? rows[others - 1] * row_bytes_ : 0;
  const double room =
      longest > cached_bytes(chip_) ? staged_bytes_ - static_cast<double>(room_for_far_rows) : staged_bytes_;
  double near = 0;
  double gather = 0;
  for (const double r : std::span(rows).first(others)) {
    const double bytes = r * row_bytes_;
    if (near + bytes <= room) {
      near += bytes;
      gather += std::max(row_bytes_ / near_bytes, least_);
    } else {
      gather += std::max(row_bytes_ / far_bytes(bytes), least_);
    }
  }
  // Segments of rows, were the entries spread evenly.
  const double places = tiles * static_cast<double>(dims_[mode_]);
  const double segments = tiles > 1 ? expected_rows(places, nnz_) : 0;
  const double starts = uneven * tiles + static_cast<double>(chip_.multiprocessors);
  return nnz_ * gather + segment_cycles * segments + starts * (tile_start_cycles + near / far_bytes(near));
}

} // namespace td::kernels::gpu
