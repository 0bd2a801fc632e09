#include "kernels/cuda/dense_layout.hpp"

#include <algorithm>

#include "kernels/cuda/sizes.hpp"

namespace td::kernels::cuda {

namespace {

i64 tiles(i64 n, i64 each) { return (n + each - 1) / each; }

/// Rows of the result that a block meets: those of its load of row tiles, at least one of them.
i64 slots_of(const DenseLayout &l) {
  if (l.direct)
    return 2 * dense_rows;
  const i64 units = l.row_tiles() * l.chunks();
  const i64 tiles_met = std::min(l.row_tiles(), tiles(units, l.blocks) / l.chunks() + 2);
  return std::min(l.count, tiles_met * dense_rows / l.inner + 2);
}

/// Columns of tiles as wide as the rank asks for and the chip has room for, and as few tiles as pay: of eights of
/// columns a tile costs two more than it has. Tiles of 120 columns cost 1.04 times as much where there are several, and
/// more where multiplying warps widen products, or where f64 has few chunks for a multiprocessor, whose beginnings and
/// ends they make longer (H200).
void cut_columns(DenseLayout &l, i64 rank, bool narrow, const Chip &chip) {
  const auto fits = [&](int width, int stages) {
    return dense_shared_bytes(l.leading, size_of(l.type), l.multiply, width, stages) <= chip.shared_bytes;
  };
  const auto cut = [&](i64 most_columns) {
    int width = dense_width(l.leading, std::min(rank, most_columns), l.multiply, size_of(l.type));
    while (width > 32 && !fits(width, dense_least_stages))
      width = width == 120 ? 96 : width - 32;
    const i64 eights = tiles(rank, 8);
    l.column_tiles = tiles(eights, width / 8);
    l.columns = tiles(eights, l.column_tiles) * 8;
    const double cost = static_cast<double>(l.column_tiles * (l.columns / 8 + 2));
    return width == 120 && l.column_tiles > 1 ? 1.04 * cost : cost;
  };
  constexpr i64 few_chunks = 16; // of 16 of the depth
  const bool few = l.type == ValueType::f64 && l.row_tiles() * tiles(l.depth, 16) < few_chunks * chip.multiprocessors;
  if (narrow || few || cut(120) >= cut(96))
    cut(96);
  else
    cut(120);
  const int most = dense_stages(l.width(), l.multiply, size_of(l.type));
  l.stages = fits(l.width(), most) ? most : dense_least_stages;
}

/// Columns, parts of the depth and blocks of a layout that has its rows and its depth.
void deal_out(DenseLayout &l, i64 rank, const Chip &chip) {
  constexpr i64 most_numbers = i64{4} << 20; // 32 MB: what a second-level cache keeps beside the tensor
  const i64 parts = tiles(l.depth, std::max<i64>(most_numbers / dense_product_ld(rank), 512));
  // Where the depth is one mode, its factor is the product.
  const bool narrow = l.depth_modes == 1 && l.type == ValueType::f32 && l.multiply == Multiply::f64 && parts > 1 &&
                      l.row_tiles() <= dense_most_narrow_tiles;
  cut_columns(l, rank, narrow, chip);
  const i64 together = std::clamp<i64>(chip.shared_bytes / dense_shared_bytes(l), 1, dense_together(l.width()));
  l.depth_part = l.depth;
  l.makes_products = l.depth_modes > 1 || (l.type == ValueType::f32 && !narrow);
  if (l.makes_products) {
    l.depth_part = tiles(tiles(l.depth, parts), l.chunk()) * l.chunk();
  }
  const i64 units = l.row_tiles() * l.chunks();
  l.blocks = std::clamp<i64>(together * chip.multiprocessors / l.column_tiles, 1,
                             std::min(std::max<i64>(units, 1), dense_most_blocks));
  l.direct = l.slabs || (l.inner == 1 && l.outer == 1 && l.count >= 2 * dense_rows && 64 * l.row_tiles() >= l.blocks &&
                         (l.multiply == Multiply::f64 || l.chunks() <= dense_chunks_in_f32));
  // Where each tile has as many blocks, and nearly all of them, neighbouring tiles are worked on at the same time.
  const i64 of_a_tile = l.blocks / std::max<i64>(l.row_tiles(), 1);
  if (l.direct && 33 * of_a_tile * l.row_tiles() >= 32 * l.blocks)
    l.blocks = of_a_tile * l.row_tiles();
  l.slots = slots_of(l);
}

} // namespace

// The constants are estimates with which predictions come within a quarter of what an H200 took (bench/results,
// 2026-11-29-NVIDIA-H200-dense-middle), but for small tensors.
double dense_cycles(const DenseLayout &l, const Chip &chip, double memory_bytes) {
  const bool f64 = l.type == ValueType::f64;
  const auto number = [](i64 n) { return static_cast<double>(n); };
  const i64 run = l.leading_size * size_of(l.type); // bytes that lie together, of a side whose modes are apart
  const bool one_by_one = l.apart() && run % 16 != 0;
  // A cycle, of 128 and a third of 640; the fewer columns a warp has, the more of them wait for their numbers.
  double multiply_adds = 140;
  if (l.multiply == Multiply::tf32_pairs)
    multiply_adds = 180;
  else if (l.width() <= 32)
    multiply_adds = 125;
  else if (f64)
    multiply_adds = std::min(60 + 0.7 * number(l.columns), l.width() == 120 ? 120. : 126.);
  else if (l.width() == 64)
    multiply_adds = 75 + 0.9 * number(l.columns);
  if (f64 && !l.leading && l.width() > 32)
    multiply_adds *= one_by_one ? 0.85 : 0.96;
  constexpr double cache_bytes = 58; // a cycle, from the second-level cache
  constexpr double product = 1;      // cycles to make a number of a Khatri-Rao product
  constexpr double part = 14000;     // cycles of each multiprocessor, to start the kernels of a part
  const double columns = number(l.columns * l.column_tiles);
  // Rows that begin anywhere are copied with what is before them where whole lines are not.
  const i64 unit = dense_unit(l.width(), size_of(l.type));
  const bool shifted = !l.apart() && l.leading_size % unit != 0;
  double reads = f64 ? 0.94 : l.width() > 16 ? 0.85 : shifted ? 0.87 : 0.92; // of the rate of memory
  if (l.apart() && !l.slabs) {
    // What begins within 32 bytes comes from the second-level cache with the rest of them.
    constexpr double beside = 24; // bytes, on average
    reads -= 0.02;
    if (one_by_one && !l.leading)
      reads = 0.67;
    if (run % 32 != 0)
      reads /= 1 + beside / number(run) + (l.leading ? 0 : beside / number(l.chunk() * size_of(l.type)));
    if (one_by_one && !f64)
      reads = std::min(reads, 0.72);
  }
  // What a tile takes once its last chunk is multiplied.
  const double tile_end = (l.direct ? 0.25 : l.width() <= 32 ? 1.5 : 1.25) * dense_rows * columns;
  const double end = std::max((l.direct ? 2500. : 5000.) * number(l.column_tiles), tile_end);
  // Products come from the second-level cache beside the tensor: what they take shows where it is not memory that is
  // waited for.
  const double product_bytes = l.makes_products ? 8 : number(size_of(l.type));
  const double depth = number(l.chunks() * l.chunk());
  const double of_tile = dense_rows * depth; // elements that are multiplied, and those that are there
  const double there = number(l.rows()) / number(l.row_tiles()) * number(l.depth);
  const double tile =
      (f64 && shifted && !l.leading && l.width() == 64 ? 1.1 : 1) *
      std::max(there * number(size_of(l.type)) / (reads * memory_bytes),
               of_tile * (columns / multiply_adds + columns * product_bytes / (dense_rows * cache_bytes)));
  const double made = l.makes_products ? number(l.depth) * columns * product : 0;
  const double parts = number(tiles(l.depth, l.depth_part));
  return number(l.row_tiles()) * (tile + end) + made + number(l.blocks) * tile_end +
         parts * (part * chip.multiprocessors + 32 * l.partials() / memory_bytes) +
         (l.direct ? number(l.rows()) * columns * 8 / memory_bytes : 0);
}

DenseLayout dense_layout(std::span<const i64> dims, int mode, i64 rows, i64 rank, ValueType type, Multiply multiply,
                         const Chip &chip) {
  const int order = static_cast<int>(dims.size());
  DenseLayout best;
  double least = 0;
  for (int begin = 0; begin < order; ++begin)
    for (int end = begin + 1; end <= order; ++end) {
      const bool between = begin <= mode && mode < end;
      const bool apart = begin > 0 && end < order;
      if (end - begin == order || (!between && !apart)) // which is the others' matrix
        continue;
      DenseLayout l;
      l.multiply = multiply;
      l.type = type;
      l.begin = begin;
      l.end = end;
      l.between = between;
      l.leading = begin == 0 || !between;
      l.count = rows;
      l.depth = 1;
      l.leading_size = 1;
      l.middle = apart ? 1 : 0;
      for (int m = 0; m < order; ++m) {
        const i64 dim = dims[static_cast<std::size_t>(m)];
        if (m < (begin > 0 ? begin : end))
          l.leading_size *= dim;
        if (begin <= m && m < end)
          l.middle *= dim;
        if (!l.of_rows(m)) {
          l.depth *= dim;
          ++l.depth_modes;
        } else if (m != mode) {
          (m < mode ? l.inner : l.outer) *= dim;
        }
      }
      deal_out(l, rank, chip);
      const double cost = dense_cycles(l, chip, nominal_memory_bytes(chip));
      if (best.end == 0 || cost < least) {
        best = l;
        least = cost;
      }
    }
  return best;
}

DenseLayout slab_layout(std::span<const i64> dims, i64 rank, ValueType type, const Chip &chip) {
  DenseLayout l;
  l.type = type;
  l.slabs = true;
  l.begin = 1;
  l.end = static_cast<int>(dims.size()) - 1;
  l.between = false;
  l.inner = l.leading_size = dims.front();
  l.count = 1;
  l.outer = dims.back();
  l.depth = 1;
  for (const i64 d : dims.subspan(1, dims.size() - 2))
    l.depth *= d;
  l.depth_modes = l.end - l.begin;
  l.middle = l.depth;
  deal_out(l, rank, chip);
  return l;
}

CellsLayout cells_layout(std::span<const i64> dims, int mode, i64 columns, int multiprocessors) {
  CellsLayout l;
  l.wide = columns % 2 == 0 ? 2 : 1;
  const i64 across = std::max<i64>(columns / l.wide, 1);
  l.width = static_cast<int>(tiles(across, tiles(across, block_threads)));
  l.groups = block_threads / l.width;
  i64 left = 1;
  i64 of_row = 1;
  for (std::size_t m = 0; m < dims.size(); ++m) {
    left *= m < static_cast<std::size_t>(mode) ? dims[m] : 1;
    of_row *= m != static_cast<std::size_t>(mode) ? dims[m] : 1;
  }
  const i64 n = dims[static_cast<std::size_t>(mode)];
  // Rows that keep the multiprocessors busy by themselves need no sums over groups.
  const bool many = left > 1 && tiles(n, l.groups) >= 2 * i64{multiprocessors};
  (left == 1 || many ? l.rows : l.step) = l.groups;
  if (many)
    return l;
  // The parts are as many as keep the multiprocessors busy and leave each thread some cells.
  const i64 row_blocks = std::max<i64>(tiles(n, l.rows), 1);
  l.parts = std::clamp<i64>(std::min(12 * i64{multiprocessors} / row_blocks, of_row / (16 * i64{l.step})), 1, 1024);
  return l;
}

} // namespace td::kernels::cuda
