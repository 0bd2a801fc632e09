#include "kernels/cuda/dense_variants.hpp"

#include <algorithm>

#include "kernels/cuda/dense_layout.hpp"
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

i64 GemmLayout::box_rows() const {
  i64 rows = box_width;
  for (std::size_t m = 0; m < box_mode; ++m)
    rows *= row_dims[m];
  return rows;
}

double GemmLayout::boxes() const {
  double boxes = number(quotient_up(row_dims[box_mode], box_width));
  for (std::size_t m = box_mode + 1; m < row_dims.size(); ++m)
    boxes *= number(row_dims[m]);
  return boxes;
}

double GemmLayout::widened() const { return widens ? number(box_rows()) * number(depth_part) : 0; }
double GemmLayout::products(i64 rank) const { return makes_products ? number(depth_part) * number(gemm_ld(rank)) : 0; }
double GemmLayout::sums(i64 rank) const { return direct ? 0 : number(box_rows()) * number(gemm_ld(rank)); }
double GemmLayout::factors(i64 rank) const {
  double rows = 0;
  for (std::size_t m = 0; m < row_dims.size() && widens; ++m)
    rows += m == place ? 0 : number(row_dims[m]);
  return rows * number(rank);
}

double GemmLayout::bytes(i64 rank) const {
  return number(gemm_blas_bytes) + 8 * parts +
         number(size_of(type)) * (gemm_rounded(widened()) + gemm_rounded(products(rank)) + gemm_rounded(sums(rank)) +
                                  gemm_rounded(factors(rank)));
}

GemmBox::GemmBox(const GemmLayout &l) : first(l.row_dims.size(), 0), dims(l.row_dims.size(), 1) {
  std::copy_n(l.row_dims.begin(), l.box_mode, dims.begin());
  dims[l.box_mode] = l.box_width;
}

bool GemmBox::next(const GemmLayout &l) {
  for (std::size_t m = l.box_mode; m < first.size(); ++m) {
    first[m] += m == l.box_mode ? l.box_width : 1;
    if (first[m] < l.row_dims[m]) {
      dims[l.box_mode] = std::min(l.box_width, l.row_dims[l.box_mode] - first[l.box_mode]);
      return true;
    }
    first[m] = 0;
  }
  return false;
}

i64 GemmBox::rows() const {
  i64 rows = 1;
  for (const i64 d : dims)
    rows *= d;
  return rows;
}

bool GemmBox::comes_later(std::size_t place) const {
  for (std::size_t m = 0; m < first.size(); ++m)
    if (m != place && first[m] > 0)
      return true;
  return false;
}

namespace {

/// The longest box of at most so many rows, and what adding it up leaves in parts: the last one has other sizes.
void cut_rows(GemmLayout &l, i64 most_rows, i64 rank, const Chip &chip) {
  i64 below = 1;
  l.box_mode = 0;
  while (l.box_mode + 1 < l.row_dims.size() && l.row_dims[l.box_mode] <= most_rows / below)
    below *= l.row_dims[l.box_mode++];
  const i64 dim = l.row_dims[l.box_mode];
  l.box_width = std::clamp<i64>(most_rows / below, 1, dim);
  if (l.direct)
    return;
  for (const i64 width : {l.box_width, dim % l.box_width})
    if (width > 0) {
      std::vector<i64> box(l.row_dims.size(), 1);
      std::copy_n(l.row_dims.begin(), l.box_mode, box.begin());
      box[l.box_mode] = width;
      const i64 parts = cells_layout(box, static_cast<int>(l.place), rank, chip.multiprocessors).parts;
      if (parts > 1)
        l.parts = std::max(l.parts, number(parts) * number(box[l.place]) * number(rank));
    }
}

GemmLayout cut_gemm(std::span<const i64> dims, int cut, int mode, i64 rows, i64 rank, ValueType type, ValueType sums,
                    const Chip &chip) {
  GemmLayout l;
  l.cut = cut;
  l.leading = mode < cut;
  l.dim = dims[static_cast<std::size_t>(mode)];
  l.type = sums;
  l.widens = type != sums;
  for (int m = 0; m < static_cast<int>(dims.size()); ++m) {
    const i64 dim = dims[static_cast<std::size_t>(m)];
    l.leading_size *= m < cut ? dim : 1;
    if ((m < cut) != l.leading) {
      l.depth *= dim;
      ++l.depth_modes;
      continue;
    }
    if (m == mode)
      l.place = l.row_dims.size();
    l.row_dims.push_back(m == mode ? std::max<i64>(rows, 1) : dim);
  }
  l.direct = l.row_dims.size() == 1;
  l.makes_products = l.depth_modes > 1 || l.widens || rank % 2 == 1; // whose rows begin with 16 bytes
  l.depth_part = l.depth;
  const auto cut_depth = [&](i64 most) {
    l.depth_part = quotient_up(l.depth, quotient_up(l.depth, std::max<i64>(most, 1)));
  };
  if (l.makes_products)
    cut_depth(gemm_most_products / rank);
  // Tiles of 128 rows for each multiprocessor, or fewer where they would have too many numbers.
  i64 most_rows = i64{128} * chip.multiprocessors;
  const i64 within = std::max<i64>(gemm_most_sums / rank, 1);
  while (most_rows > within && most_rows % 2 == 0)
    most_rows /= 2;
  most_rows *= std::max<i64>(within / most_rows, 1);
  if (l.direct && !l.widens)
    most_rows = l.row_dims.front();
  cut_rows(l, most_rows, rank, chip);
  if (l.widens)
    cut_depth(std::min(l.depth_part, gemm_most_sums / l.box_rows()));
  return l;
}

} // namespace

// The constants are estimates with which predictions come within a third of what an H200 took (bench/results,
// 2026-11-28-NVIDIA-H200-dense-chunks): cuBLAS has tiles of 64 columns or of several 128, which are faster, and copies
// 16 bytes at a time where rows begin with such.
double gemm_cycles(const GemmLayout &l, i64 rank, const Chip &chip, double memory_bytes) {
  constexpr double start = 24000; // cycles of each multiprocessor, to start the kernels of a box and part
  constexpr double tile = 128;
  const bool narrow = rank <= 64;
  const double columns = std::ceil(number(rank) / 64) * 64;
  const bool aligned = l.leading_size % 2 == 0 || l.widens;
  const double wide = rank > 128 && !l.leading ? 0.865 : 1; // rows of trailing modes by several tiles of columns
  const double reached = aligned ? wide : (l.leading ? 0.76 : 0.74);
  const double multiply_adds = reached * (narrow ? 112 : 128); // a cycle, of 128 of the tensor cores in f64
  const double bytes = number(size_of(l.type));
  const double depth = number(l.depth);
  const double parts = std::ceil(depth / number(l.depth_part));
  double rows = 1;
  for (const i64 d : l.row_dims)
    rows *= number(d);
  const double box_rows = number(l.box_rows());
  // Tiles that all multiprocessors work on at a time; where there are few, cuBLAS has smaller ones and divides the
  // depth.
  const double box_tiles = std::ceil(box_rows / tile);
  const double waves = box_tiles * (columns / tile) / number(chip.multiprocessors);
  const double small_waves = std::ceil(box_rows / 64) * (columns / 64) / number(chip.multiprocessors);
  double used = std::max(waves / std::ceil(waves), 0.83);
  if (waves < 1)
    used = narrow ? 0.9 : std::min(0.65 + 0.6 * small_waves, 0.95);
  if (!aligned)
    used /= 1 + 100 / std::min(depth, number(l.depth_part)); // a tile's beginning and end
  const double element = std::max(box_tiles * tile / box_rows * columns / (multiply_adds * used),
                                  number(size_of(l.widens ? ValueType::f32 : l.type)) / (0.9 * memory_bytes));
  // Sums that are written and read; adding up a box takes three times that, since neither kernel works beside the
  // other.
  const double written = rows * number(rank) * 2 * bytes / memory_bytes;
  const double made = (parts > 1 ? l.boxes() : 1) * depth * number(rank);
  return rows * depth * element + (l.direct ? written / 2 : 3 * written) + (parts - 1) * written +
         (l.makes_products ? made : 0) + (l.widens ? rows * depth * 2 * bytes / memory_bytes : 0) +
         l.boxes() * parts * start * chip.multiprocessors;
}

GemmLayout gemm_layout(std::span<const i64> dims, int mode, i64 rows, i64 rank, ValueType type, ValueType sums,
                       const Chip &chip) {
  GemmLayout best;
  double least = 0;
  for (int cut = 1; cut < static_cast<int>(dims.size()); ++cut) {
    GemmLayout l = cut_gemm(dims, cut, mode, rows, rank, type, sums, chip);
    const double cost = gemm_cycles(l, rank, chip, nominal_memory_bytes(chip));
    if (best.cut == 0 || cost < least) {
      best = std::move(l);
      least = cost;
    }
  }
  return best;
}

DenseKernel dense_kernel(const DenseView &x, const MttkrpArgs &args, const Chip &chip) {
  if (args.dense.kernel != DenseKernel::automatic)
    return args.dense.kernel;
  const i64 rank = args.out.cols;
  constexpr i64 few = 32; // columns, with which memory bounds `fused`, and cuBLAS multiplies as with 64
  if (x.type == ValueType::f32 || rank <= few)
    return DenseKernel::fused;
  const i64 rows = std::max<i64>(args.rows.size(), 1);
  const DenseLayout fused = dense_layout(x.dims, args.mode, rows, rank, x.type, Multiply::f64, chip);
  const GemmLayout gemm = gemm_layout(x.dims, args.mode, rows, rank, x.type, args.out.type, chip);
  return gemm_cycles(gemm, rank, chip, nominal_memory_bytes(chip)) <
                 dense_cycles(fused, chip, nominal_memory_bytes(chip))
             ? DenseKernel::gemm
             : DenseKernel::fused;
}

} // namespace td::kernels::cuda
