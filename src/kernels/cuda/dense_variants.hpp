// The variants of dense MTTKRP beside the fused one (dense_layout.hpp), after Kosmacher, Phipps and Rajamanickam, "A
// performance portable matrix free dense MTTKRP in GenTen", arXiv:2510.14891: how each is cut and what it takes, read
// by the launch and by the prediction, so plain C++.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

/// Whether the kernel that goes over tiles of slices takes it: a tile of one element is ELEM, a whole slice is SLICE.
constexpr bool is_tiled(DenseKernel kernel) noexcept {
  return kernel == DenseKernel::elem || kernel == DenseKernel::slice || kernel == DenseKernel::tile;
}

// ---- elem, slice and tile ----

inline constexpr int tile_rows = 4;          // neighbouring slices that a group of lanes works on at a time
inline constexpr i64 tile_most_parts = 4096; // of a slice's tiles: their sums are added up

/// Columns that a lane holds: with four, registers would spill in each fiber.
constexpr int tile_each(i64 rank) { return rank <= 32 ? 1 : 2; }

/// A slice, one index of the mode, is cut into tiles; groups of lanes sum parts of them, and the parts' sums are added
/// in order.
struct TileLayout {
  i64 width = 1; // indices that a tile has of each other mode; fewer where the mode ends
  i64 rows = 0;
  i64 tiles = 0; // of a slice
  i64 parts = 0; // of these, for a group each
  int lanes = 0; // of a group
  int each = 0;  // columns of a lane
  i64 column_tiles = 0;

  i64 row_groups() const { return (rows + tile_rows - 1) / tile_rows; }
  i64 columns() const { return i64{lanes} * each; } // of a group
  /// Numbers in f64 until parts are added up, counted in doubles: sizes that nothing has are predicted too.
  double partials(i64 rank) const {
    return static_cast<double>(parts) * static_cast<double>(rows) * static_cast<double>(rank);
  }
};

TileLayout tile_layout(std::span<const i64> dims, int mode, i64 rows, i64 rank, ValueType type,
                       const DenseChoice &choice, const Chip &chip);

/// Cycles of all multiprocessors together.
double tile_cycles(const TileLayout &layout, std::span<const i64> dims, int mode, ValueType type, const Chip &chip);

// ---- gemm ----

/// cuBLAS's own scratch memory: what its documentation recommends for compute capability 9.0.
inline constexpr i64 gemm_blas_bytes = i64{32} << 20;

/// The most numbers of a Khatri-Rao product, and of what cuBLAS leaves to be summed, at a time: 64 and 128 MB in f64.
inline constexpr i64 gemm_most_products = i64{1} << 23;
inline constexpr i64 gemm_most_sums = i64{1} << 24;

/// The tensor is a matrix as in dense_layout.hpp: the side with the mode gives rows, the other one the depth, by whose
/// Khatri-Rao product cuBLAS multiplies. What that leaves, a row for each combination of the row side's modes, is
/// multiplied by the rows of its other factors and summed over them (Phan, Tichavsky and Cichocki, "Fast alternating LS
/// algorithms for high order CANDECOMP/PARAFAC tensor factorizations", IEEE Trans. Signal Process. 61, 2013). All of it
/// goes by boxes of rows and parts of the depth, so that workspace does not grow with the tensor.
struct GemmLayout {
  int cut = 0;
  bool leading = true;             // the rows are of the modes below the cut
  std::vector<i64> row_dims;       // of the rows' side; of the mode as many as are asked for
  std::size_t place = 0;           // of the mode among them
  i64 dim = 0;                     // of the mode
  i64 depth = 1;                   // combinations of the other side's modes
  int depth_modes = 0;             // how many these are
  i64 leading_size = 1;            // combinations of the modes below the cut
  ValueType type = ValueType::f64; // in which all is multiplied
  bool widens = false;             // the tensor is f32, and its numbers are copied in `type`
  bool makes_products = false;     // else a factor serves as the Khatri-Rao product
  bool direct = false;             // rows are those of the result, which cuBLAS writes
  // A box has all of the modes below `box_mode`, `box_width` of its indices at most, and one of each mode above it.
  std::size_t box_mode = 0;
  i64 box_width = 1;
  i64 depth_part = 1;
  double parts = 0; // sums in f64 that adding up a box takes

  i64 box_rows() const;
  double boxes() const;
  /// Numbers of `type`.
  double widened() const;
  double products(i64 rank) const;
  double sums(i64 rank) const;
  double factors(i64 rank) const; // in `type`, of the rows' side
  double bytes(i64 rank) const;   // of workspace
};

/// Rows that are multiplied at a time: from which of each row mode on, and how many.
struct GemmBox {
  std::vector<i64> first;
  std::vector<i64> dims;

  /// The first one.
  explicit GemmBox(const GemmLayout &layout);
  /// The one after this; false: it was the last one.
  bool next(const GemmLayout &layout);
  i64 rows() const;
  /// Whether a box before it has the same rows of the result.
  bool comes_later(std::size_t place) const;
};

/// The cut that takes the fewest cycles. `sums`: the type of the result, in which terms are formed and added.
GemmLayout gemm_layout(std::span<const i64> dims, int mode, i64 rows, i64 rank, ValueType type, ValueType sums,
                       const Chip &chip);

/// The leading dimension of products and sums: cuBLAS copies 16 bytes at a time where rows begin with such.
constexpr i64 gemm_ld(i64 rank) { return (rank + 1) / 2 * 2; }

/// Numbers that an array of its workspace has: each begins with a line of memory.
inline double gemm_rounded(double numbers) { return std::ceil(numbers / 32) * 32; }

/// Cycles of all multiprocessors together, where each gets so many bytes a cycle from memory.
double gemm_cycles(const GemmLayout &layout, i64 rank, const Chip &chip, double memory_bytes);

// ---- auto ----

/// The kernel that takes a dense MTTKRP: `gemm` of f64 where it takes fewer cycles than `fused`, by what is known of
/// the chip alone. Sums of f32 are no business of cuBLAS, which adds them in f32.
DenseKernel dense_kernel(const DenseView &x, const MttkrpArgs &args, const Chip &chip);

} // namespace td::kernels::cuda
