// The inner loops that are compiled once for each instruction set and picked when first called. They know nothing of
// formats: those who call them cut the work into batches.
#pragma once

#include "core/views.hpp"

namespace td::kernels::cpu::simd {

/// The instruction set in use, such as "AVX-512".
const char *target_name();

/// Numbers of a type in one register.
i64 lanes(ValueType type);

/// Columns rounded up to whole registers.
inline i64 padded(i64 columns, ValueType type) {
  const i64 width = lanes(type);
  return (columns + width - 1) / width * width;
}

// ---- reading keys ----

/// Nonzeros of a batch at most: what the inner loops work on at a time stays in the first-level cache.
inline constexpr i64 batch_size = 512;

/// Nonzeros between asking for a row and using it: ~100 ns of memory latency at 3 to 8 ns a nonzero.
inline constexpr i64 prefetch_distance = 24;

/// Indices of a batch in one mode, with room for what prefetching reads behind them.
inline constexpr i64 index_length = batch_size + prefetch_distance;

/// Rows of a factor: below 2^32, so that indices of a batch take 4 bytes.
using Index = std::uint32_t;

struct Field {
  int shift = 0;
  int bits = 0;
  i64 base = 0; // added to the index
};

void decode(const std::uint32_t *keys, i64 count, Field field, Index *to);
void decode(const u64 *keys, i64 count, Field field, Index *to);
void decode(const u128 *keys, i64 count, Field field, Index *to);
void decode(const i64 *indices, i64 count, Index *to);

// ---- sums of products of factor rows ----

/// Consecutive nonzeros of a batch whose sum goes to one row.
template <class T> struct Run {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  T *out = nullptr; // [rank]
};

/// Rows that nonzeros are added to: nonzero k to the one at out + offset[k].
struct Rows {
  Rows(double *to, const i64 *offsets, i64 nonzeros, bool prefetch);
  double *out;
  const i64 *offset; // [count + prefetch_distance]; beyond count any row
  i64 count;
  bool far;    // too many for the near caches
  i64 changes; // neighbours in different rows
};

/// A batch of nonzeros with, for each of `factors` factor matrices, the row that belongs to each nonzero.
template <class T> struct RowProducts {
  const T *values = nullptr;
  int factors = 0;
  const T *const *factor = nullptr; // [factors]
  const Index *index = nullptr;     // [factors][index_length]: the row begins at factor[f] + index * ld
  i64 ld = 0;
  i64 rank = 0;
  int far = 0; // the first so many factors are too large for any cache: their rows are prefetched

  const T *row(int f, i64 k) const { return factor[f] + i64{index[f * index_length + k]} * ld; }
};

/// out := sum over each run of value * product of rows, or, with `add`, out + that; accumulated in T.
void sum_runs(const RowProducts<float> &x, std::span<const Run<float>> runs, bool add);
void sum_runs(const RowProducts<double> &x, std::span<const Run<double>> runs, bool add);

/// Adds value * product of rows to each nonzero's row, in f64.
void add_rows(const RowProducts<float> &x, const Rows &rows);
void add_rows(const RowProducts<double> &x, const Rows &rows);

/// model[k] := sum over r of weights[r] * product of the rows of nonzero k, in f64.
void model_values(const RowProducts<float> &x, const double *weights, i64 count, double *model);
void model_values(const RowProducts<double> &x, const double *weights, i64 count, double *model);

// ---- rows of cells ----

/// sums[i, :] += right * sum over l < depth of left[l, :] * cells[i, l, :], elementwise, for i < rows; in f64.
template <class T> struct CellTile {
  const T *cells = nullptr; // row (i, l) at cells + (i * row_cells + l) * ld
  i64 ld = 0;
  i64 row_cells = 0;
  i64 rows = 0;
  i64 depth = 0;
  i64 rank = 0;
  const T *left = nullptr;  // [depth][rank]; null: ones
  const T *right = nullptr; // [rank]; null: ones
  double *sums = nullptr;   // [rows][rank]
};

void add_cells(const CellTile<float> &x);
void add_cells(const CellTile<double> &x);

// ---- small matrix products ----

/// c += (a b) diag(scale), accumulated in T over the whole of depth, then added to c in f64.
template <class T> struct Product {
  const T *a = nullptr; // rows x depth: element (i, k) at a[i * a_row + k * a_depth]
  i64 a_row = 0;
  i64 a_depth = 0;
  const T *b = nullptr; // depth x columns, row-major
  i64 b_ld = 0;
  double *c = nullptr; // rows x columns, row-major
  i64 c_ld = 0;
  i64 rows = 0;
  i64 depth = 0;
  i64 columns = 0;          // a multiple of lanes
  const T *scale = nullptr; // [columns]; null: ones
};

void add_product(const Product<float> &p);
void add_product(const Product<double> &p);

// ---- blocks of an unfolding times a Khatri-Rao product ----

/// Rows of a block at most.
inline constexpr i64 block_rows = 24;

/// Cache lines that will be needed soon. They are asked for while a block is worked on: in each of the first `segments`
/// segments of its depth the next `lines` of them, `line` bytes apart, each with the `beside` - 1 lines that follow it.
struct Ahead {
  const char *at = nullptr;
  i64 lines = 0;
  i64 line = 0;
  i64 segment = 0; // bytes from one segment's first line to that of the next
  i64 segments = 0;
  bool far = false; // too many, or too late needed, for the first-level cache
  i64 beside = 1;
};

/// c += (a b) diag(scale), accumulated in T over the whole of depth, then added to c in f64; or c := that.
template <class T> struct Block {
  const T *a = nullptr; // rows x depth: row i, step k of segment s at a[i * a_row + k * a_step + s * a_segment]
  i64 a_row = 0;
  i64 a_step = 0;
  i64 a_segment = 0;
  i64 rows = 0; // at most block_rows
  i64 depth = 0;
  i64 segment = 0;          // steps of a segment; the last may have fewer
  const T *b = nullptr;     // depth x columns as write_panels leaves it
  i64 columns = 0;          // a multiple of lanes
  double *c = nullptr;      // rows x columns, row-major
  const T *scale = nullptr; // [columns]; null: ones
  bool first = false;       // c := instead of c +=
  Ahead ahead;
};

void add_block(const Block<float> &p);
void add_block(const Block<double> &p);

/// Registers of a fiber at most: block_rows elements of f64 with AVX-512.
inline constexpr i64 fiber_registers = 3;

/// The same where a column of the unfolding is a fiber, contiguous in memory: registers hold its rows, and columns of
/// the Khatri-Rao product go without being padded. c[v][j][lane] += scale[j] * sum over k of
/// a[k * a_step + v * lanes + lane] * b(k, j).
template <class T> struct FiberBlock {
  const T *a = nullptr;
  i64 a_step = 0;
  i64 registers = 0; // at most fiber_registers
  i64 depth = 0;
  i64 segment = 0;      // steps of a segment
  const T *b = nullptr; // depth x columns as write_panels leaves it
  i64 columns = 0;
  double *c = nullptr;      // registers x columns rounded up to lanes x lanes
  const T *scale = nullptr; // [columns]; null: ones
  bool first = false;       // c := instead of c +=
  Ahead ahead;
};

void add_fibers(const FiberBlock<float> &p);
void add_fibers(const FiberBlock<double> &p);

/// Rows of a matrix as panels of up to three registers of columns, each row-major and without gaps.
template <class T> struct Panels {
  T *to = nullptr;
  i64 rows = 0;
  i64 columns = 0;  // written; up to whole registers follow zeros
  bool far = false; // the rows come from memory, and those that follow are asked for
};

/// Rows of a Khatri-Rao product: each of some rows, elementwise times a factor, and again for each further factor.
template <class T> struct PanelRows {
  const T *rows = nullptr;
  i64 ld = 0;
  i64 count = 0;
  const T *factor = nullptr; // null: ones
  i64 factor_ld = 0;
  i64 factors = 1;
};

/// Row at + k + count * n of the panels := rows[k * ld + r] * factor[n * factor_ld + r].
void write_panels(const Panels<float> &to, i64 at, const PanelRows<float> &from);
void write_panels(const Panels<double> &to, i64 at, const PanelRows<double> &from);

/// Asks for bytes [from, from + bytes) to be brought near.
void prefetch(const void *from, i64 bytes);

/// to[k * to_ld + r] := rows[k * ld + r] * factor[r] for k < count, r < columns; factor null: ones.
void scale_rows(const float *rows, i64 ld, i64 count, const float *factor, i64 columns, float *to, i64 to_ld);
void scale_rows(const double *rows, i64 ld, i64 count, const double *factor, i64 columns, double *to, i64 to_ld);

} // namespace td::kernels::cpu::simd
