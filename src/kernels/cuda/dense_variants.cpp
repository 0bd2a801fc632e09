#include "kernels/cuda/dense_variants.hpp"

#include <algorithm>

#include "kernels/cuda/sizes.hpp"
#include "kernels/gpu_model.hpp"

namespace td::kernels::cuda {

namespace {

double number(i64 n) { return static_cast<double>(n); }

i64 quotient_up(i64 n, i64 each) { return (n + each - 1) / each; }

/// Tiles of a slice. Dims multiply to at most 2^63 - 1.
i64 tiles_of(std::span<const i64> dims, int mode, i64 width) {
  i64 tiles = 1;
  for (int m = 0; m < static_cast<int>(dims.size()); ++m)
    tiles *= m == mode ? 1 : quotient_up(dims[static_cast<std::size_t>(m)], width);
  return tiles;
}

/// The width of tiles whose rows of the other factors, `columns` wide, fit the near memory of a multiprocessor, of
/// which sixteen groups with a tile each have an equal part: so many are there at least (mttkrp_tile.cu, launch
/// bounds). This is the paper's heuristic, that a tile's rows are to fit a cache, with the sizes of this kernel.
i64 cached_width(int order, i64 columns, ValueType type, const Chip &chip) {
  constexpr i64 groups = 16;
  return std::max<i64>(chip.shared_bytes / groups / ((order - 1) * columns * size_of(type)), 1);
}

} // namespace

TileLayout tile_layout(std::span<const i64> dims, int mode, i64 rows, i64 rank, ValueType type,
                       const DenseChoice &choice, const Chip &chip) {
  TileLayout l;
  l.rows = rows;
  l.lanes = lanes_for(rank);
  l.each = tile_each(rank);
  l.column_tiles = quotient_up(rank, l.columns());
  // Groups that fill the multiprocessors, of 64 warps each.
  const double wanted = number(i64{chip.multiprocessors} * 64 * (warp / l.lanes));
  const double without_parts = number(l.row_groups()) * number(l.column_tiles);
  const i64 longest = *std::max_element(dims.begin(), dims.end());
  switch (choice.kernel) {
  case DenseKernel::elem:
    l.width = 1;
    break;
  case DenseKernel::slice:
    l.width = longest;
    break;
  default:
    l.width = std::min(choice.tile_width, longest);
  }
  if (l.width == 0) {
    l.width = std::min(cached_width(static_cast<int>(dims.size()), l.columns(), type, chip), longest);
    while (l.width > 1 && number(tiles_of(dims, mode, l.width)) * without_parts < wanted)
      l.width = quotient_up(l.width, 2);
  }
  l.tiles = tiles_of(dims, mode, l.width);
  const double parts = std::clamp(wanted / without_parts, 1.0, number(tile_most_parts));
  l.parts = std::min(static_cast<i64>(parts), l.tiles);
  return l;
}

// An estimate by counting what passes through a multiprocessor's near memory, 128 bytes a cycle: an element is one such
// access, whatever is read of it, and a row of the first other factor serves tile_rows elements; the other factors'
// rows are read, and the next fiber is found, once a fiber of a tile. Where there are few groups, as of whole slices,
// each waits for its own accesses.
double tile_cycles(const TileLayout &l, std::span<const i64> dims, int mode, ValueType type, const Chip &chip) {
  constexpr double reached = 0.5;      // of the near memory's rate
  constexpr double fiber_accesses = 8; // and mode, to find the next fiber
  constexpr double warps = 16;         // that keep a multiprocessor busy
  const double row = number(l.columns() * size_of(type));
  const double part_of_warp = number(l.lanes) / warp;
  const std::size_t first = mode == 0 ? 1 : 0;
  double fibers = number(quotient_up(dims[first], l.width)); // of a slice
  for (std::size_t m = first + 1; m < dims.size(); ++m)
    fibers *= static_cast<int>(m) == mode ? 1 : number(dims[m]);
  const double elements = fibers / number(quotient_up(dims[first], l.width)) * number(dims[first]);
  const double modes = number(std::ssize(dims));
  const double element_bytes = tile_rows * part_of_warp * gpu::near_bytes + row;
  const double fiber_bytes = (modes - 2) * row + fiber_accesses * modes * part_of_warp * gpu::near_bytes;
  const double groups = number(l.row_groups()) * number(l.column_tiles);
  const double busy = std::min(groups * number(l.parts) * part_of_warp / (warps * chip.multiprocessors), 1.0);
  return groups * (elements * element_bytes + fibers * fiber_bytes) / (busy * reached * gpu::near_bytes);
}

GemmLayout gemm_layout(std::span<const i64> dims, int mode, i64 rows, ValueType type, ValueType sums) {
  const int order = static_cast<int>(dims.size());
  GemmLayout l;
  l.rows = rows;
  l.dim = dims[static_cast<std::size_t>(mode)];
  l.type = sums;
  for (int m = 0; m < order; ++m)
    if (m != mode)
      (m < mode ? l.left : l.right) *= dims[static_cast<std::size_t>(m)];
  l.right_first = mode == 0 || (mode + 1 < order && l.right >= l.left);
  l.direct = mode == 0 || mode + 1 == order;
  l.widens = type != sums;
  const int right_modes = order - 1 - mode;
  const auto makes = [&](int modes) { return modes > 1 || l.widens; };
  l.makes_depth = makes(l.right_first ? right_modes : mode);
  l.makes_rest = !l.direct && makes(l.right_first ? mode : right_modes);
  return l;
}

double GemmLayout::widened() const { return widens ? number(left) * number(rows) * number(right) : 0; }
double GemmLayout::depth_products(i64 rank) const { return makes_depth ? number(depth()) * number(rank) : 0; }
double GemmLayout::rest_products(i64 rank) const { return makes_rest ? number(rest()) * number(rank) : 0; }
double GemmLayout::products(i64 rank) const { return direct ? 0 : number(rest()) * number(rows) * number(rank); }

double GemmLayout::bytes(i64 rank) const {
  return number(gemm_blas_bytes) +
         number(size_of(type)) * (widened() + depth_products(rank) + rest_products(rank) + products(rank));
}

} // namespace td::kernels::cuda
