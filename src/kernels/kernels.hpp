// Every kernel, declared once. A backend implements all of them on views of its own memory; `reference` is the
// definition that the others are tested against.
#pragma once

#include <span>
#include <string>

#include "kernels/views.hpp"

namespace td::kernels {

/// How threads that work on entries in no order of rows (coordinates, BLCO) keep their sums into one row apart. The
/// entries of sorted copies and dense tensors belong to rows already; there only `owner` means anything.
enum class Conflicts {
  automatic, // what the backend expects to be fastest
  privatize, // each adds to rows of its own, which are merged
  atomic,    // all add to the same rows, with atomic instructions
  owner,     // each row's terms are added by one, in stored order, whatever the number of threads
};

/// A backend that has several kernels for MTTKRP of a dense tensor takes this one (cuda/README.md); others do not look.
enum class DenseKernel {
  automatic, // what the backend expects to be fastest
  elem,      // element by element
  slice,     // a whole slice at a time
  tile,      // tile by tile of a slice
  gemm,      // a matrix product with a Khatri-Rao product in memory
  fused,     // a matrix product with a Khatri-Rao product that is formed beside it
  fused_tf32 // the same of f32 in pairs of TensorFloat-32
};

struct DenseChoice {
  DenseKernel kernel = DenseKernel::automatic;
  i64 tile_width = 0; // of DenseKernel::tile, indices of each mode; 0: what the backend's near memory has room for
};

/// out[i, :] for i in rows := sum over the stored entries in `entries` whose index in `mode` is i; or, with `add`,
/// grows by it. Rows outside `rows` are not written. Dense views take all entries.
///
/// Factors and out are of the tensor's value type, with two exceptions. Of an f32 tensor out may be f64: then terms are
/// formed and added in f64. Where Backend::gathers_f32 says so, the factors of an f64 tensor may be the copies that
/// Backend::to_f32 makes, with their exponents; terms and sums are f64.
struct MttkrpArgs {
  int mode = 0;
  std::span<const ConstMatrix> factors; // [order]; factors[mode] is not read
  Matrix out;                           // dims[mode] x rank
  Range rows;
  Range entries;
  Conflicts conflicts = Conflicts::automatic;
  bool add = false;                              // to what out holds
  std::span<const double *const> exponents = {}; // [order], of f32 copies; exponents[mode] is not read
  DenseChoice dense = {};
  bool full = false; // each of `rows` is known to have some of `entries`, which are of these rows alone
};

/// Columns of the copies in f32 that mttkrp is given: whole 16 bytes a row.
constexpr i64 gathered_columns(i64 rank) noexcept { return (rank + 3) / 4 * 4; }

enum class NormKind { two, max };

enum class Combine { sum, max };

/// What kept normal equations from being factored: a value that is not finite, or an eigen-decomposition that did not
/// converge.
enum class SolveFailure : i64 { none = 0, not_finite = 1, no_convergence = 2 };

/// The largest condition number that is reported: beyond it rounding alone decides the smallest eigenvalue.
inline constexpr double most_condition = 0x1p52;

/// What factoring normal equations found, in backend memory.
struct SolveRecord {
  double effective_rank = 0; // eigenvalues kept; the rank if the Cholesky factorization was used
  double used_eigen = 0;     // 1 if the eigen-decomposition was used
  double condition = 0;      // of the matrix scaled to a diagonal of [1, 4): 1-norm; by eigen-decomposition 2-norm
  SolveFailure failure = SolveFailure::none;
  i64 at = 0;       // not_finite: where in the matrix
  double value = 0; // not_finite: what stands there
};

/// Normal equations A V = M and their factor, in backend memory.
struct NormalEquations {
  i64 rank = 0;
  const double *v = nullptr; // [rank][rank]
  const double *f = nullptr; // [rank][rank], as factor_normal leaves it
  const SolveRecord *record = nullptr;
};

/// How a factor as it is stored stands to the model's: column r of the model's factor m is the stored one divided by
/// scales[r]. So normalization is no pass over rows: R x R matrices and vectors of R numbers take it in.
struct SolveColumns {
  std::span<const double *const> grams;  // of the other modes' factors in the model
  std::span<const double *const> scales; // of the other modes
  const double *own = nullptr;           // scales of the factor so far
  const double *weights = nullptr;       // of the model so far, or null
  i64 rank = 0;
};

/// What columns are multiplied by on their way through a solve: vectors in backend memory, or null for ones.
struct SolveScales {
  const double *right = nullptr;  // those of the right-hand side
  const double *before = nullptr; // those of the factor so far; null: it does not count
  const double *solved = nullptr; // those of the result, powers of two
};

/// The exponent of `solved` for a weight of exponent `of_weight`: powers of two beyond it would leave the range.
constexpr int solved_exponent(int of_weight) noexcept { return of_weight < -1000 ? 1000 : -of_weight; }

/// The same as solve_scales writes it.
struct SolveScalesOut {
  double *right, *before, *solved; // [rank] each
  SolveScales read() const noexcept { return {right, before, solved}; }
};

/// The normal equations and their factor as prepare_solve leaves them; as NormalEquations.
struct PreparedSolve {
  double *v, *f;
  SolveRecord *record;
  SolveScalesOut scales;
};

/// What is summed over the rows that a solve leaves behind. With weights and scales the sums are of all rows, and
/// finish_columns follows.
struct ColumnSums {
  double *gram = nullptr;    // [rank][rank], as gram() sums it
  double *largest = nullptr; // [rank] largest magnitudes
  double *inner = nullptr;   // [rank] sums over i of m[i, r] * a[i, r]; null: not wanted
  double *weights = nullptr; // [rank]
  double *scales = nullptr;  // [rank]
};

/// What combine_rows takes.
struct Combined {
  ConstMatrix parts;
  Combine how = Combine::sum;
  void *out = nullptr;
};

/// A sentence about a failed solve; empty if it did not fail.
std::string failure_text(const SolveRecord &record, i64 rank);

/// Functions may run asynchronously in call order. R x R matrices and scalars are f64, row-major without gaps, in the
/// backend's memory: an iteration asks for no number of theirs before its end, so that a device never waits for the
/// host.
class Kernels {
public:
  virtual ~Kernels() = default;

  virtual void mttkrp(const TensorView &x, const MttkrpArgs &args) = 0;

  /// out[i, :] for i in rows := sum over the cells in `entries` whose index in `mode` is i of the cell's row times the
  /// rows of the other modes' factors, elementwise; all of one type, summed in f64 in an order that depends on the
  /// shape and `entries` alone. There are two modes or more. Does not add, and rows of other cells are not read.
  virtual void mttkrp_cells(const CellsView &x, const MttkrpArgs &args) = 0;

  /// out[i + dims[0] * q, :] := row i of MTTKRP in mode 0 of the last mode's slab q alone, for every q: the partial
  /// product that keeps a dense tensor's first and last mode. Of one type; factors[0] and the last one are not read.
  /// One after the other, unless a backend knows better.
  virtual void mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out);

  /// to := a, of f64, in f32; columns that `to` has beyond a's are zeros. With `exponents` each column is divided by
  /// 2^exponents[r] first, which brings its largest magnitude into [1/2, 1): nothing overflows, and what underflows is
  /// below 2^-125 of that. A column of zeros has exponent 0.
  virtual void to_f32(ConstMatrix a, Matrix to, double *exponents) = 0;

  // A caller's column-major matrix is a ConstMatrix of its columns: row r of that is column r.

  /// to[k, r] := from[r, rows[k]], both of one type; `rows`, in backend memory, null: k itself.
  virtual void gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) = 0;

  /// to[r, rows[k]] := from[k, r]; the other elements of `to` are not written.
  virtual void scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) = 0;

  /// to[k, :] := from[rows[k], :], both of one type; `rows` is in backend memory.
  virtual void gather_rows(ConstMatrix from, const i64 *rows, Matrix to) = 0;

  /// to[rows[k], :] += from[k, :], in their one type; the rows that are named differ.
  virtual void add_rows(ConstMatrix from, const i64 *rows, Matrix to) = 0;

  /// a := 0; what is beyond its columns is not written.
  virtual void set_zero(Matrix a) = 0;

  /// *at := the smallest i * cols + r for which a[i, r] is NaN or infinite; rows * cols where all are finite.
  virtual void first_not_finite(ConstMatrix a, i64 *at) = 0;

  /// y := X_(n) X_(n)^T omega, f64, dims[mode] x s, without an unfolded copy; or, with `add`, y grows by it. Takes a
  /// DenseView, or a CooView in which entries that differ only in `mode` are neighbours (formats::build_fibers).
  virtual void unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) = 0;

  /// g := A^T A, accumulated in f64, symmetric, the same for any number of threads.
  virtual void gram(ConstMatrix a, double *g) = 0;

  /// v := elementwise product of the Gram matrices, ridge added to its diagonal.
  virtual void hadamard(std::span<const double *const> grams, i64 rank, double ridge, double *v) = 0;

  /// f := a matrix with f^T f = v^+ for the symmetric positive semidefinite v, whose rows and columns are first scaled
  /// by powers of two to a diagonal in [1, 4). By Cholesky f is the inverse of the lower triangle; if that fails or the
  /// reciprocal condition number is below cutoff, the eigen-decomposition drops eigenvalues <= cutoff * largest, and f
  /// has a scaled eigenvector in each row, zeros for those dropped. v = 0 gives f = 0. Where it fails the record says
  /// so, and f is NaN.
  ///
  /// Two products with f lose eps sqrt(condition) of the residual, one with v^-1 would lose eps condition
  /// (docs/math.md).
  virtual void factor_normal(const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) = 0;

  /// right[r] := 1 / the product of the other modes' scales[r], before[r] := weights[r] / own[r] (0 without weights),
  /// solved[r] := the power of two that brings weights[r] into [1, 2), or 1 where there is no such.
  virtual void solve_scales(const SolveColumns &columns, const SolveScalesOut &out) = 0;

  /// hadamard of the Gram matrices, factor_normal of that, and solve_scales; where launches are the limit, in one. It
  /// may go on beside other work (Device::begin_beside).
  virtual void prepare_solve(const SolveColumns &columns, double ridge, double cutoff, const PreparedSolve &out);

  /// a := m f^T f, accumulated in f64. With `before`, b = a diag(before) was the factor so far, and where eigenvalues
  /// were dropped it keeps its part in their directions, which m says nothing of: a := b + (m - b v) f^T f. Without
  /// that part the fit could fall. Columns of m and of the result are scaled. a is not m.
  virtual void solve_normal(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a) = 0;

  /// solve_normal, and sums over its rows as they are stored; where memory is the limit, in one pass. gram is the same
  /// bits as gram(a), largest as column_norms(a); inner as column_dots(m, a) but for the order of sums.
  virtual void solve_and_sum(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a,
                             const ColumnSums &sums);

  /// Normalizes a factor of which solve_and_sum has summed the columns, without touching it: weights[r] :=
  /// largest[r] / solved[r], but not below 1, and 0 for a column of zeros; scales[r] := what the stored column is
  /// divided by to have that weight left out, 1 for zeros; gram := that of the columns so divided.
  virtual void finish_columns(i64 rank, const double *solved, const double *largest, double *weights, double *scales,
                              double *gram) = 0;

  /// a := m p, accumulated in f64. a may be m itself.
  virtual void multiply(ConstMatrix m, const double *p, Matrix a) = 0;

  /// out[r] := sum of squares (NormKind::two: not yet the root) or largest magnitude of column r.
  virtual void column_norms(ConstMatrix a, NormKind kind, double *out) = 0;

  /// norms[r], as column_norms left it, := the weight that the column is to be divided by: its length for
  /// NormKind::two; its largest magnitude, but not below 1, for max; 0 for a column of zeros.
  virtual void weights_from_norms(NormKind kind, i64 rank, double *norms) = 0;

  /// a[:, r] /= d[r]; where d[r] = 0 the column is left as it is.
  virtual void divide_columns(Matrix a, const double *d) = 0;

  /// divide_columns, then gram; where memory is the limit, in one pass over the rows.
  virtual void divide_and_gram(Matrix a, const double *d, double *g) {
    divide_columns(a, d);
    gram(a, g);
  }

  /// out[r] := sum over i of a[i, r] * b[i, r], in f64, the same for any number of threads.
  virtual void column_dots(ConstMatrix a, ConstMatrix b, double *out) = 0;

  /// out[r] := the sum or the largest of column r of `parts`, in f64, in the order of the rows; a NaN stays. Rounded
  /// once to the type of `parts`, which is that of out.
  virtual void combine_rows(ConstMatrix parts, Combine how, void *out) = 0;
  /// The same of several; where launches are the limit, in one.
  virtual void combine_all(std::span<const Combined> all) {
    for (const Combined &some : all)
      combine_rows(some.parts, some.how, some.out);
  }

  /// a[i, r] := uniform in [0, 1) from (seed, mode, first_row + i, r).
  virtual void random_uniform(Matrix a, u64 seed, int mode, i64 first_row) = 0;

  /// Over stored entries in `entries`: out[0] := sum of (x - m)^2, out[1] := sum of m^2, out[2] := sum of x m, where m
  /// is the model's value there: sum over r of weights[r] * product of factors.
  virtual void compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                       double *out) = 0;
};

} // namespace td::kernels
