#include "kernels/gpu_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace td::kernels::gpu {

namespace {

constexpr double rank = 32;                  // that tiles are decided for
constexpr i64 room_for_sums = i64{35} << 10; // of shared memory, which groups of threads share, and to spare
constexpr double near_part = 0.85;           // of shared memory's rate, what the walk over entries reaches
// A row takes at least so many cycles, wherever it comes from:
constexpr double f32_row_cycles = 1.78;
constexpr double widened_row_cycles = 3.1; // where its numbers are widened
constexpr double tile_start_cycles = 8800; // to find where a tile begins and to meet at its end
constexpr double segment_cycles = 88;      // to end a segment of a row and add it to the row
constexpr double uneven = 4;               // as many tiles as others has a multiprocessor that has the emptiest
// Times the second-level cache: up to this many bytes nearly all rows are met there, from this many on few.
constexpr double all_cached = 0.5;
constexpr double few_cached = 6;

/// Seconds that all multiprocessors together take for so many cycles of one.
double seconds(double cycles, const Rates &rates) { return cycles * near_bytes / rates.near_rows; }

double least_seconds(RowTypes types, const Rates &rates) {
  return seconds(types.widened() ? widened_row_cycles : types.rows == ValueType::f32 ? f32_row_cycles : 0, rates);
}

} // namespace

Rates nominal_rates(const Chip &chip) {
  const double part = static_cast<double>(chip.multiprocessors) / Chip().multiprocessors;
  const double memory = chip.memory_rate / Chip().memory_rate;
  return {4.3e12 * memory, 33e12 * part, 8.5e12 * part, 4.6e12 * memory, 30e12 * part};
}

double row_rate(double bytes, const Rates &rates, const Chip &chip) {
  const double caches = bytes / static_cast<double>(chip.cache_bytes);
  const double part = std::clamp(std::log(caches / all_cached) / std::log(few_cached / all_cached), 0.0, 1.0);
  return 1 / ((1 - part) / rates.middle_rows + part / rates.far_rows);
}

void Fetches::add_staged(double fetched, double bytes, RowTypes types, const Rates &rates) {
  const double row = least_seconds(types, rates);
  staged_bytes += bytes;
  near += std::max(fetched / (near_part * rates.near_rows), row);
  least += row;
}

void Fetches::add_far(double fetched, double bytes, RowTypes types, const Rates &rates, const Chip &chip) {
  const double row = least_seconds(types, rates);
  far += std::max(fetched / row_rate(bytes, rates, chip), row);
  least += row;
}

double fill_seconds(const Fetches &fetches, double tiles, double blocks, const Rates &rates) {
  return (uneven * tiles + blocks) * (seconds(tile_start_cycles, rates) + fetches.staged_bytes / rates.middle_rows);
}

double segment_seconds(double segments, const Rates &rates) { return seconds(segment_cycles * segments, rates); }

SortedCost::SortedCost(const Chip &chip, std::span<const i64> dims, int mode, i64 nnz, RowTypes types)
    : chip_(chip), rates_(nominal_rates(chip)), dims_(dims), mode_(static_cast<std::size_t>(mode)),
      nnz_(static_cast<double>(nnz)), types_(types), row_bytes_(rank * static_cast<double>(size_of(types.rows))),
      staged_bytes_(static_cast<double>(chip.shared_bytes - room_for_sums)) {}

int SortedCost::most_bits() const { return std::ilogb(staged_bytes_ / row_bytes_); }

// What rows from shared memory and from elsewhere take is added up here, where predictions count the longer one: by the
// longer one MTTKRP came to take 1.008 times as long over 56 cases, and up to 1.11 times (vast, mode 2, f64; H200). And
// rows that are not staged have the second-level cache to themselves in predictions, while modes share it evenly here:
// else one tile was taken where 521 take 0.63 of its time (delicious at 0.2, mode 3, f32: rows of 68 MB, 0.3 and 2 GB).
double SortedCost::operator()(std::span<const int> bits) const {
  double tiles = 1;
  std::array<double, max_order> bytes; // of each other mode's rows; many tiles are tried: no memory for each
  std::size_t others = 0;
  for (std::size_t m = 0; m < dims_.size(); ++m)
    if (m != mode_) {
      tiles *= static_cast<double>(((dims_[m] - 1) >> bits[m]) + 1);
      bytes[others++] = row_bytes_ * static_cast<double>(std::min(static_cast<u64>(dims_[m]), u64{1} << bits[m]));
    }
  std::sort(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(others));
  const bool from_memory = others > 0 && come_from_memory(bytes[others - 1], chip_);
  const double room = from_memory ? staged_bytes_ - static_cast<double>(room_for_far_rows) : staged_bytes_;
  Fetches fetches;
  std::size_t staged = 0;
  for (; staged < others && fetches.staged_bytes + bytes[staged] <= room; ++staged)
    fetches.add_staged(row_bytes_, bytes[staged], types_, rates_);
  for (const double all : std::span(bytes).subspan(staged, others - staged))
    fetches.add_far(row_bytes_, all * static_cast<double>(others - staged), types_, rates_, chip_);
  // Segments of rows, were the entries spread evenly.
  const double places = tiles * static_cast<double>(dims_[mode_]);
  const double segments = tiles > 1 ? expected_rows(places, nnz_) : 0;
  return nnz_ * (fetches.near + fetches.far) + segment_seconds(segments, rates_) +
         fill_seconds(fetches, tiles, static_cast<double>(chip_.multiprocessors), rates_);
}

} // namespace td::kernels::gpu
