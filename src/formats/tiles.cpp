#include "formats/tiles.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "formats/gpu_tiles.hpp"
#include "formats/key.hpp"
#include "kernels/tuning.hpp"

namespace td::formats {

namespace {

// Rows of the other factors that a tile needs, to begin with: 40 KiB at rank 32 in f64, a first-level cache. Twice as
// many are tried until rows are cut into pieces of enough nonzeros; by then a tile may fit the second-level cache only.
constexpr i64 tile_rows = 160;
// Nonzeros that a tile's piece of a row should have on average: shorter ones cost more in row ends than tiles save.
constexpr i64 piece_size = 16;
// Nonzeros for each row of the other factors that a tile fetches: with fewer, fetching them is the work.
constexpr i64 tile_reuse = 8;
// Places for pieces of rows that tiles may make, each a counter while a copy is built: for each entry, and at least.
constexpr i64 most_places = 2;
constexpr i64 few_places = i64{1} << 20;

/// Cuts the longest mode but `mode` in half until the rows of a tile are at most `rows`.
std::vector<int> bits_for_rows(std::span<const i64> dims, int mode, i64 rows) {
  auto bits = bits_of(dims);
  while (true) {
    double sum = 0;
    std::size_t longest = dims.size();
    i64 most = 0;
    for (std::size_t m = 0; m < dims.size(); ++m) {
      if (static_cast<int>(m) == mode)
        continue;
      const i64 in_tile = bits[m] > 62 ? dims[m] : std::min(dims[m], i64{1} << bits[m]);
      sum += static_cast<double>(in_tile);
      if (in_tile > most) {
        most = in_tile;
        longest = m;
      }
    }
    if (sum <= static_cast<double>(rows) || most <= 1)
      return bits;
    --bits[longest];
  }
}

void require_few(const TileRule &rule, std::span<const i64> dims, int mode, i64 nnz, std::span<const int> bits) {
  const double tiles = tiles_of(dims, mode, bits);
  const double places = tiles * static_cast<double>(dims[static_cast<std::size_t>(mode)]);
  const double most = std::max(static_cast<double>(few_places), most_places * static_cast<double>(nnz));
  if (tiles > 1 && places > most)
    throw_error(Status::unsupported,
                "option 'tiles' = \"{}\": {:.0f} places for pieces of rows in one copy of {} entries; expected at most "
                "{:.0f}, so more rows in a tile",
                rule.rows, places, nnz, most);
}

} // namespace

double tiles_of(std::span<const i64> dims, int mode, std::span<const int> bits) {
  double tiles = 1;
  for (std::size_t m = 0; m < dims.size(); ++m)
    if (static_cast<int>(m) != mode)
      tiles *= static_cast<double>(((dims[m] - 1) >> bits[m]) + 1);
  return tiles;
}

std::vector<int> tile_bits(std::span<const i64> dims, int mode, i64 nnz) {
  const auto whole = bits_of(dims);
  const i64 most_tiles = nnz / piece_size / dims[static_cast<std::size_t>(mode)];
  for (i64 rows = tile_rows; std::min(most_tiles, nnz / tile_reuse / rows) > 1; rows *= 2) {
    const auto bits = bits_for_rows(dims, mode, rows);
    if (tiles_of(dims, mode, bits) <= static_cast<double>(std::min(most_tiles, nnz / tile_reuse / rows)))
      return bits;
  }
  return whole;
}

std::vector<int> tile_bits(const TileRule &rule, std::span<const i64> dims, int mode, i64 nnz) {
  switch (rule.kind) {
  case TileRule::Kind::cpu:
    return tile_bits(dims, mode, nnz);
  case TileRule::Kind::gpu:
    return gpu_tile_bits(dims, mode, nnz,
                         rule.f32_rows && kernels::pays_to_gather(dims, nnz) ? ValueType::f32 : rule.type,
                         rule.f64_sums ? ValueType::f64 : rule.type);
  case TileRule::Kind::rows: {
    auto bits = bits_for_rows(dims, mode, rule.rows);
    require_few(rule, dims, mode, nnz, bits);
    return bits;
  }
  case TileRule::Kind::none:
    break;
  }
  return bits_of(dims);
}

} // namespace td::formats
