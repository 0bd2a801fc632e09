// Which tiles a GPU's kernel for sorted copies does best with, by what an entry costs in cycles of one multiprocessor
// at rows of 256 bytes. The figures are those of an H200 (132 multiprocessors, 227 KB of shared memory each, 60 MB of
// second-level cache); bench/gpu_mttkrp measures what comes of them.
#include "formats/gpu_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/key.hpp"

namespace td::formats {

namespace {

constexpr double multiprocessors = 132;
constexpr double window_rows = 768; // 192 KiB, which leaves room for the sums that groups of threads share
constexpr double row_near = 2;      // a row from shared memory: 128 bytes a cycle
constexpr double row_far = 7;       // from the second-level cache: 8.5 TB/s over all multiprocessors
constexpr double piece = 50;        // to end a piece of a row and add it to the row
constexpr double tile_start = 8000; // to find where a tile begins and to meet at its end
constexpr int least_bits = 5;
constexpr int most_bits = 9;
constexpr double clear_gain = 0.95; // tiles must be so much cheaper than none

/// One of `rows` rows: of 50 MB some miss the second-level cache, of more most do.
double far_row(double rows) { return rows <= 1e5 ? row_far : rows <= 2e5 ? 8 : 12; }

class CostModel {
public:
  CostModel(std::span<const i64> dims, int mode, i64 nnz)
      : dims_(dims), mode_(static_cast<std::size_t>(mode)), nnz_(static_cast<double>(nnz)) {}

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
    double near = 0;
    double gather = 0;
    for (const double r : std::span(rows).first(others)) {
      if (near + r <= window_rows) {
        near += r;
        gather += row_near;
      } else {
        gather += far_row(r);
      }
    }
    // Pieces of rows, were the entries spread evenly.
    const double places = tiles * static_cast<double>(dims_[mode_]);
    const double pieces = tiles > 1 ? places * -std::expm1(-nnz_ / places) : 0;
    const double starts = tiles + multiprocessors;
    return nnz_ * gather + piece * pieces + starts * (tile_start + near * row_far);
  }

private:
  std::span<const i64> dims_;
  std::size_t mode_;
  double nnz_;
};

} // namespace

std::vector<int> gpu_tile_bits(std::span<const i64> dims, int mode, i64 nnz) {
  const auto whole = bits_of(dims);
  if (nnz == 0)
    return whole;
  const CostModel model(dims, mode, nnz);
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
