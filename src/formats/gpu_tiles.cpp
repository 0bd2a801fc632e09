// Which tiles a GPU's kernel for sorted copies does best with, by what an entry costs in cycles of one multiprocessor
// at rows of 32 numbers. The figures are those of an H200 (132 multiprocessors, 227 KB of shared memory each, 60 MB of
// second-level cache); bench/gpu_mttkrp measures what comes of them.
#include "formats/gpu_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/key.hpp"

namespace td::formats {

namespace {

constexpr double multiprocessors = 132;
constexpr double rank = 32;
constexpr double window_bytes = 192 * 1024;         // which leaves room for the sums that groups of threads share
constexpr double window_beside_memory = 128 * 1024; // and for rows that come from memory to arrive in
constexpr double cache_bytes = 51.2e6;
constexpr double near_bytes = 128;  // a cycle, from shared memory
constexpr double f32_row = 1.6;     // at least
constexpr double mixed_row = 2.8;   // at least, where its numbers are widened
constexpr double piece = 80;        // to end a piece of a row and add it to the row
constexpr double tile_start = 8000; // to find where a tile begins and to meet at its end
constexpr double uneven = 4;        // as many tiles as others has a multiprocessor that has the emptiest
constexpr int least_bits = 5;
constexpr double clear_gain = 0.95; // tiles must be so much cheaper than none

/// Bytes a cycle of rows that take so many together: from the second-level cache, 8.5 TB/s over all multiprocessors; of
/// as many as it holds some miss it, of more most do.
double far_bytes(double together) { return together <= 25.6e6 ? 36.6 : together <= cache_bytes ? 32 : 21.3; }

/// What one row takes at least, wherever it comes from.
double least_cycles(ValueType row_type, ValueType term_type) {
  if (row_type != term_type)
    return mixed_row;
  return row_type == ValueType::f32 ? f32_row : 0;
}

class CostModel {
public:
  CostModel(std::span<const i64> dims, int mode, i64 nnz, ValueType row_type, ValueType term_type)
      : dims_(dims), mode_(static_cast<std::size_t>(mode)), nnz_(static_cast<double>(nnz)),
        row_bytes_(rank * static_cast<double>(size_of(row_type))), least_(least_cycles(row_type, term_type)) {}

  int most_bits() const { return std::ilogb(window_bytes / row_bytes_); }

  double cost(std::span<const int> bits) const {
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
    const double room = longest > cache_bytes ? window_beside_memory : window_bytes;
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
    // Pieces of rows, were the entries spread evenly.
    const double places = tiles * static_cast<double>(dims_[mode_]);
    const double pieces = tiles > 1 ? places * -std::expm1(-nnz_ / places) : 0;
    const double starts = uneven * tiles + multiprocessors;
    return nnz_ * gather + piece * pieces + starts * (tile_start + near / far_bytes(near));
  }

private:
  std::span<const i64> dims_;
  std::size_t mode_;
  double nnz_;
  double row_bytes_;
  double least_; // cycles of a row
};

} // namespace

std::vector<int> gpu_tile_bits(std::span<const i64> dims, int mode, i64 nnz, ValueType row_type, ValueType term_type) {
  const auto whole = bits_of(dims);
  if (nnz == 0)
    return whole;
  const CostModel model(dims, mode, nnz, row_type, term_type);
  const int most_bits = model.most_bits();
  auto best = whole;
  double least = clear_gain * model.cost(whole);
  const auto attempt = [&](const std::vector<int> &tried) {
    if (const double cost = model.cost(tried); cost < least) {
      least = cost;
      best = tried;
    }
  };
  // One mode is cut, or two.
  auto bits = whole;
  for (std::size_t a = 0; a < dims.size(); ++a)
    for (std::size_t b = a; b < dims.size(); ++b)
      for (int bits_a = least_bits; bits_a <= most_bits; ++bits_a)
        for (int bits_b = a == b ? most_bits : least_bits; bits_b <= most_bits; ++bits_b) {
          if (static_cast<int>(a) == mode || static_cast<int>(b) == mode)
            continue;
          bits = whole;
          bits[a] = std::min(whole[a], bits_a);
          if (a != b)
            bits[b] = std::min(whole[b], bits_b);
          attempt(bits);
        }
  return best;
}

} // namespace td::formats
