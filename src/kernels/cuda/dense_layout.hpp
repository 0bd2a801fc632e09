// How the fused MTTKRP of a dense tensor is cut: read by the launch and by the prediction, so plain C++.
//
// The tensor is a matrix: the indices of some neighbouring modes by those of the others, which may lie on both sides of
// these. One side holds the mode, alone or beside others, and its indices are the rows of a product; over the other
// side, the depth, is summed. So neither a short mode nor one in the middle makes a narrow product, and nothing is
// unfolded. Sums over the other modes of the rows' side follow, on results in registers.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

inline constexpr int dense_rows = 128; // of a tile
inline constexpr i64 dense_most_blocks = 1024;

/// How the tensor cores multiply. In TensorFloat-32 each number of f32 is a pair of it, with which three products of
/// halves come within 2^-22 of theirs; sums are f32 for some thousand terms, then f64.
enum class Multiply { f64, tf32_pairs };

/// Pairs are used where they are asked for, of an f32 result of an f32 tensor whose elements are so large or small that
/// no sum of them and numbers in [-1, 1] leaves f32, nor their scale f64.
inline Multiply dense_multiply(const DenseView &x, const MttkrpArgs &args) {
  return args.dense.kernel == DenseKernel::fused_tf32 && x.type == ValueType::f32 && args.out.type == ValueType::f32 &&
                 x.largest >= 0x1p-60 && x.largest <= 0x1p60 && x.dims.size() <= 8
             ? Multiply::tf32_pairs
             : Multiply::f64;
}

/// Columns that a tile has room for: those of a warp, or of two or three beside each other. Narrow tiles leave more of
/// shared memory to the tensor. Of f64 rows of leading modes they took 1.2 times as long (H200).
constexpr int dense_width(bool leading, i64 columns, Multiply multiply, i64 element) {
  const bool f64 = multiply == Multiply::f64;
  if (columns <= 16 && f64 && !(leading && element == 8))
    return 16;
  return columns <= 32 ? 32 : columns <= 64 ? 64 : columns <= 96 || !f64 ? 96 : 120;
}
/// Warps that multiply beside each other.
constexpr int dense_across(int width) { return (width + 39) / 40; }
/// How many blocks a multiprocessor has registers for.
constexpr int dense_together(int width) { return width <= 32 ? 2 : 1; }
/// The depth of a chunk of elements of so many bytes. What is done once a chunk takes as long as to copy 8 KB of f32.
constexpr int dense_depth(int width, Multiply multiply, i64 element) {
  return width == 96 || multiply == Multiply::tf32_pairs || (width <= 64 && element == 4) ? 32 : 16;
}
/// Chunks that are on their way at a time, of elements of so many bytes: as many as the shared memory of an H200 has
/// room for beside other blocks, since the memory's rate is reached by what is on its way; the least where a block can
/// have less.
constexpr int dense_stages(int width, Multiply multiply, i64 element) {
  if (multiply == Multiply::tf32_pairs)
    return width == 32 ? 3 : 4;
  const bool small = element == 4;
  switch (width) {
  case 16:
    return 4;
  case 32:
    return small ? 3 : 4;
  case 64:
    return small ? 4 : 6;
  case 96:
    return small ? 4 : 3;
  default:
    return small ? 7 : 5;
  }
}
inline constexpr int dense_least_stages = 3;
/// Whether rows of trailing modes that begin anywhere are copied in whole lines, which hold a stage for longer and take
/// the multiplying warps more instructions: not where the tensor cores bound it, nor of f32.
constexpr bool dense_in_lines(bool leading, int width, Multiply multiply, i64 element) {
  return !leading && width <= 64 && multiply == Multiply::f64 && element == 8;
}
/// Copies of 16 bytes begin where so many elements do: where 16 bytes do, or 32 where less is to come from the
/// second-level cache. A copy asks it for all 32 bytes that its 16 are in, and of two such copies each does unless both
/// go to the same 32 of shared memory. With 97 to 120 columns f32 took up to 1.06 times as long so (H200); f64 waits
/// for memory.
constexpr int dense_unit(int width, i64 element) {
  return (element == 4 && width <= 64 ? 32 : 16) / static_cast<int>(element);
}
/// Elements from row to row of a chunk in shared memory, where a unit more than a row has finds room.
constexpr int dense_x_ld(bool leading, int width, Multiply multiply, i64 element) {
  return leading ? dense_rows + 32 / static_cast<int>(element)
                 : dense_depth(width, multiply, element) + std::max(dense_unit(width, element), 4);
}
/// Numbers between rows of products in shared memory, so that lanes that read together read different banks.
constexpr int dense_padding(Multiply multiply) { return multiply == Multiply::f64 ? 4 : 2; }
/// Bytes of shared memory that a block takes with so many of these, of elements of so many bytes.
constexpr i64 dense_shared_bytes(bool leading, i64 element, Multiply multiply, int width, int stages) {
  const int depth = dense_depth(width, multiply, element);
  const i64 chunk = i64{leading ? depth : dense_rows} * dense_x_ld(leading, width, multiply, element);
  const i64 products_ld = width + dense_padding(multiply);
  const i64 stage = chunk * element + depth * products_ld * 8 + 2 * 8;
  return (stages * stage + 32 * products_ld * 8 + 2 * dense_rows * 8 + 31) / 32 * 32;
}

/// Sums in f32 take no more chunks than this one after the other, which bounds what they lose by 256 roundings, 2^-16
/// of their terms' magnitudes; of terms of one magnitude it was 3e-7.
inline constexpr int dense_chunks_in_f32 = 256;

/// An f32 factor that is the Khatri-Rao product is widened to f64 beforehand if the second-level cache holds it so, and
/// else by the warps that multiply by it, as long as no more row tiles than these do: in parts it would take two
/// kernels more for each, and more of the memory's rate.
inline constexpr i64 dense_most_narrow_tiles = 16;

/// The leading dimension of a Khatri-Rao product: rows of 16 bytes.
constexpr i64 dense_product_ld(i64 rank) { return (rank + 1) / 2 * 2; }

struct DenseLayout {
  Multiply multiply = Multiply::f64;
  ValueType type = ValueType::f64; // of the tensor
  int begin = 0;                   // the matrix is of the modes from `begin` to `end` by the others
  int end = 0;
  bool between = true;  // the rows are of the modes from `begin` to `end`
  bool leading = true;  // the first mode is of the rows' side: neighbours in memory are neighbouring rows
  i64 inner = 1;        // combinations of the row side's modes below the mode
  i64 count = 0;        // rows of the result
  i64 outer = 1;        // combinations of the row side's modes above it
  i64 depth = 0;        // combinations of the other side's modes
  int depth_modes = 0;  // how many these are
  i64 leading_size = 0; // combinations of the first mode's side up to the first of the other side's modes
  i64 middle = 0;       // combinations of the modes from `begin` to `end`, where the others are apart; else 0
  i64 columns = 0;      // of a tile, a multiple of 8
  i64 column_tiles = 0;
  int stages = 0;
  i64 blocks = 0;      // of each column tile: they share its pairs of a row tile and a chunk equally
  bool slabs = false;  // each row is one of the result: slab_layout
  bool direct = false; // rows are those of the result, and many: a tile that one block has is written by it
  i64 slots = 0;       // rows of the result that a block adds up, at most; if direct, of its first and last tile
  bool makes_products =
      false;          // of rows of several factors, or widened ones; else a factor serves as the Khatri-Rao product
  i64 depth_part = 0; // how much of the depth has products at a time

  bool of_rows(int mode) const { return (begin <= mode && mode < end) == between; }
  /// Whether modes before and after the others make one side together.
  bool apart() const { return middle > 0; }
  i64 rows() const { return inner * count * outer; }
  i64 row_tiles() const { return (rows() + dense_rows - 1) / dense_rows; }
  int width() const { return dense_width(leading, columns, multiply, size_of(type)); }
  i64 chunk() const { return dense_depth(width(), multiply, size_of(type)); }
  i64 chunks() const { return (depth + chunk() - 1) / chunk(); }
  // Numbers of eight bytes, counted in doubles: sizes that nothing has are predicted too.
  /// The sums of all blocks until they are added up.
  double partials() const {
    return static_cast<double>(blocks) * static_cast<double>(slots) * static_cast<double>(column_tiles * columns);
  }
  /// TensorFloat-32 needs the scale of each column of products, and the largest number of each depth mode's.
  double scales(i64 rank) const {
    return multiply == Multiply::tf32_pairs ? static_cast<double>(rank) * (1 + (depth_modes + 1) / 2) : 0;
  }
  double products(i64 rank) const {
    const i64 rows = std::min(depth, depth_part);
    return makes_products ? static_cast<double>(multiply == Multiply::f64 ? rows : (rows + 7) / 8 * 8) *
                                static_cast<double>(dense_product_ld(rank))
                          : 0;
  }
};

inline i64 dense_shared_bytes(const DenseLayout &l) {
  return dense_shared_bytes(l.leading, size_of(l.type), l.multiply, l.width(), l.stages);
}

/// Bytes a cycle and multiprocessor from memory, as an H200 has 18: for decisions, which go by no measurement.
inline double nominal_memory_bytes(const Chip &chip) noexcept {
  const Chip h200;
  return 18 * (chip.memory_rate / h200.memory_rate) * h200.multiprocessors / chip.multiprocessors;
}

/// Cycles of all multiprocessors together, where each gets so many bytes a cycle from memory.
double dense_cycles(const DenseLayout &layout, const Chip &chip, double memory_bytes);

/// The partial product that keeps the first and the last mode: a row for each two indices of these, direct.
DenseLayout slab_layout(std::span<const i64> dims, i64 rank, ValueType type, const Chip &chip);

/// The matrix that takes the fewest cycles, by what is known of the chip alone: the same in each run. `rows`: how many
/// of the mode's are asked for.
DenseLayout dense_layout(std::span<const i64> dims, int mode, i64 rows, i64 rank, ValueType type, Multiply multiply,
                         const Chip &chip);

/// How MTTKRP on a partial product is dealt out to blocks of threads: `groups` beside each other, each with a cell and
/// `width` threads, of which each has `wide` of its columns.
struct CellsLayout {
  int wide = 1;
  int width = 1;
  int groups = 1;
  int rows = 1;  // of the result, that a block has: one, whose cells its groups take in turn, or one for each group
                 // where rows lie together or are many
  int step = 1;  // cells of a row from one that a thread takes to its next
  i64 parts = 1; // that the cells of one row are summed in, by blocks of their own

  unsigned threads() const { return static_cast<unsigned>((width * groups + 31) / 32 * 32); }
};

CellsLayout cells_layout(std::span<const i64> dims, int mode, i64 columns, int multiprocessors);

} // namespace td::kernels::cuda
