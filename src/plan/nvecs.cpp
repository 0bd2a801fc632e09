#include "plan/nvecs.hpp"

#include <algorithm>
#include <cmath>

#include "formats/key.hpp"

namespace td::plan {

namespace {

constexpr double number = sizeof(double);

/// What MTTKRP-like products with X_(n) X_(n)^T take on a CPU: omega and the sums in whole registers, sums of parts,
/// and for each thread a tile of a dense tensor's unfolding. Follows CpuBackend::unfolding_normal.
double normal_bytes(const Layout &l, double n, double columns, int threads) {
  constexpr double most_parts = 16, part_numbers = 1 << 22, grain = 4096, tile_numbers = 32768;
  const double width = 8 * std::ceil(columns / 8);
  const double wanted = l.sparse ? static_cast<double>(l.nnz) / grain : static_cast<double>(l.nnz) / n / 8;
  const double most = std::floor(std::clamp(part_numbers / (n * width), 1.0, most_parts));
  const double parts = std::floor(std::clamp(wanted, 1.0, most));
  const double step = std::clamp(tile_numbers / n, 8.0, 256.0);
  const double tiles = l.sparse ? width : step * (n + width);
  return number * ((2 + parts) * n * width + std::min<double>(threads, parts) * tiles);
}

/// Bytes that an eigen-decomposition takes, with the matrix.
double eigen_bytes(double size) { return number * (3 * size * size + 8 * size); }

NvecsNeed whole_mode(const Layout &l, double n, int threads) {
  const double columns = std::min<double>(n, identity_columns);
  const double matrix = number * n * n;
  const double some = number * n * columns;
  NvecsNeed need;
  need.device = 2 * some;
  need.host = std::max(matrix + some, eigen_bytes(n));
  need.together = std::max(matrix + 3 * some + normal_bytes(l, n, columns, threads), eigen_bytes(n));
  return need;
}

NvecsNeed long_mode(const Layout &l, i64 length, i64 count, int threads) {
  const auto n = static_cast<double>(length);
  const auto s = static_cast<double>(subspace_columns(length, count));
  const double both = 2 * number * n * s; // the subspace and its image
  const double small = 5 * number * s * s;
  const double vectors = number * n * static_cast<double>(count);
  const double rotating = 4 * number * s * s + eigen_bytes(s) + number * s * s;
  NvecsNeed need;
  need.host = std::max(both + vectors, rotating);
  need.device = both + small + 3 * number * n * s;
  need.together = both + small + std::max({both + vectors, normal_bytes(l, n, s, threads), rotating});
  return need;
}

} // namespace

NvecsNeed nvecs_need(const Layout &l, i64 rank, int threads) {
  const auto nnz = static_cast<double>(l.nnz);
  const double coordinates =
      l.sparse ? nnz * (8 * static_cast<double>(l.dims.size()) + static_cast<double>(size_of(l.type))) : 0;
  const Decoded decoded = l.sparse ? decoded_bytes(l.format, {l.stored_dims, l.nnz, l.type}, threads) : Decoded{};
  NvecsNeed all{decoded.peak, decoded.peak, 0};
  for (std::size_t m = 0; m < l.dims.size(); ++m) {
    double ordering = 0; // of the entries by fibers: an order and keys, each twice; then the order beside what it makes
    if (l.sparse) {
      const int bits = formats::linear_bits(l.dims) - index_bits(l.dims[m]);
      const double key = bits <= formats::max_linear_bits ? formats::key_bytes_for(bits) : 8;
      ordering = std::max(nnz * (16 + 2 * key), nnz * 8 + coordinates);
    }
    const NvecsNeed mode = l.dims[m] <= longest_whole_mode
                               ? whole_mode(l, static_cast<double>(l.dims[m]), threads)
                               : long_mode(l, l.dims[m], std::min(rank, l.dims[m]), threads);
    all.together = std::max(all.together, decoded.kept + std::max(ordering, coordinates + mode.together));
    all.host = std::max(all.host, decoded.kept + std::max(ordering, coordinates + mode.host));
    all.device = std::max(all.device, mode.device);
  }
  return all;
}

} // namespace td::plan
