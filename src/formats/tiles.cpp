#include "formats/tiles.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "formats/key.hpp"
#include "kernels/cpu_model.hpp"
#include "kernels/gpu_model.hpp"

namespace td::formats {

namespace {

// Places for segments of rows that tiles may make, each a counter while a copy is built: for each entry, and at least.
constexpr i64 most_places = 2;
constexpr i64 few_places = i64{1} << 20;
// These are for a GPU:
constexpr int least_bits = 5;
constexpr double clear_gain = 0.95; // tiles must be so much cheaper than none

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
    throw_error(
        Status::unsupported,
        "option 'tiles' = \"{}\": {:.0f} places for segments of rows in one copy of {} entries; expected at most "
        "{:.0f}, so more rows in a tile",
        rule.rows, places, nnz, most);
}

kernels::gpu::RowTypes row_types(const TileRule &rule, std::span<const i64> dims, i64 nnz) {
  return {rule.f32_rows && kernels::gpu::pays_to_gather(dims, nnz) ? ValueType::f32 : rule.type,
          rule.f64_sums ? ValueType::f64 : rule.type};
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
  using kernels::cpu::segment_size;
  using kernels::cpu::tile_reuse;
  const auto whole = bits_of(dims);
  const i64 most_tiles = nnz / segment_size / dims[static_cast<std::size_t>(mode)];
  for (i64 rows = kernels::cpu::first_tile_rows; std::min(most_tiles, nnz / tile_reuse / rows) > 1; rows *= 2) {
    const auto bits = bits_for_rows(dims, mode, rows);
    if (tiles_of(dims, mode, bits) <= static_cast<double>(std::min(most_tiles, nnz / tile_reuse / rows)))
      return bits;
  }
  return whole;
}

std::vector<int> gpu_tile_bits(const kernels::Chip &chip, std::span<const i64> dims, int mode, i64 nnz,
                               ValueType row_type, ValueType term_type) {
  const auto whole = bits_of(dims);
  if (nnz == 0)
    return whole;
  const kernels::gpu::SortedCost cost(chip, dims, mode, nnz, {row_type, term_type});
  const int most_bits = cost.most_bits();
  auto best = whole;
  double least = clear_gain * cost(whole);
  const auto attempt = [&](const std::vector<int> &tried) {
    if (const double seconds = cost(tried); seconds < least) {
      least = seconds;
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

std::vector<int> tile_bits(const TileRule &rule, std::span<const i64> dims, int mode, i64 nnz) {
  switch (rule.kind) {
  case TileRule::Kind::cpu:
    return tile_bits(dims, mode, nnz);
  case TileRule::Kind::gpu: {
    const kernels::gpu::RowTypes types = row_types(rule, dims, nnz);
    return gpu_tile_bits(rule.chip, dims, mode, nnz, types.rows, types.terms);
  }
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

double gpu_seconds(const TileRule &rule, std::span<const i64> dims, i64 nnz) {
  double seconds = 0;
  for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode)
    seconds += kernels::gpu::SortedCost(rule.chip, dims, mode, nnz,
                                        row_types(rule, dims, nnz))(tile_bits(rule, dims, mode, nnz));
  return seconds;
}

} // namespace td::formats
