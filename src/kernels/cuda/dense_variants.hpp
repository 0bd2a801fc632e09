// The variants of dense MTTKRP beside the fused one (dense_layout.hpp), after Kosmacher, Phipps and Rajamanickam, "A
// performance portable matrix free dense MTTKRP in GenTen", arXiv:2510.14891: how each is cut and what it takes, read
// by the launch and by the prediction, so plain C++.
#pragma once

#include <span>

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
  /// Numbers in f64 until parts are added up, told as double: sizes that nothing has are predicted too.
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

/// The modes below the mode and those above it are its left and right side. The longer side's Khatri-Rao product is
/// multiplied with the tensor by cuBLAS; what that leaves is multiplied by the other side's product and summed over it
/// (Phan, Tichavsky and Cichocki, "Fast alternating LS algorithms for high order CANDECOMP/PARAFAC tensor
/// factorizations", IEEE Trans. Signal Process. 61, 2013).
struct GemmLayout {
  bool right_first = true; // cuBLAS sums over the right side
  i64 left = 1;            // combinations of its modes
  i64 right = 1;
  i64 dim = 0; // of the mode, of which `rows` are asked for
  i64 rows = 0;
  ValueType type = ValueType::f64; // in which all is multiplied
  bool widens = false;             // the tensor is f32, and its rows are copied in `type`
  bool makes_depth = false;        // the product that cuBLAS multiplies by is made, not a factor as it is
  bool makes_rest = false;         // likewise the other side's
  bool direct = false;             // there is no other side: cuBLAS writes the result

  i64 depth() const { return right_first ? right : left; }
  i64 rest() const { return right_first ? left : right; }
  /// Numbers of `type`.
  double widened() const;
  double depth_products(i64 rank) const;
  double rest_products(i64 rank) const;
  double products(i64 rank) const; // of cuBLAS, before they are summed over the other side
  double bytes(i64 rank) const;    // of workspace
};

/// `sums`: the type of the result, in which terms are formed and added.
GemmLayout gemm_layout(std::span<const i64> dims, int mode, i64 rows, ValueType type, ValueType sums);

} // namespace td::kernels::cuda
