// Every kernel, declared once. A backend (reference, cpu, cuda) implements all of them on views of its own memory;
// the layers above know no more of a backend than this. `reference` is the definition that the others are tested
// against.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/views.hpp"

namespace td::kernels {

// ---- views of stored tensors; pointers are in the backend's memory unless said otherwise ----

/// Coordinates, 0-based, one array a mode.
struct CooView {
  std::span<const i64> dims; // host
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  const i64 *const *indices = nullptr; // [order]; the array of pointers is on the host
  const void *values = nullptr;
};

/// Where each mode's index stands in a linearized key: (key >> shift[m]) & ((1 << bits[m]) - 1).
struct KeyLayout {
  int order = 0;
  std::array<std::uint8_t, max_order> shift{};
  std::array<std::uint8_t, max_order> bits{};
};

/// BLCO (Nguyen et al. 2022): nonzeros in the order of their interleaved (ALTO) index; each keeps the low bits of its
/// indices in one 64-bit key of contiguous fields, and a block of them shares the upper bits.
struct BlcoView {
  std::span<const i64> dims; // host
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  KeyLayout layout;
  const u64 *keys = nullptr;
  const void *values = nullptr;
  i64 blocks = 0;
  const i64 *block_begin = nullptr; // [blocks + 1] first nonzero of each block
  const i64 *block_base = nullptr;  // [blocks * order] added to (or-ed with) the decoded indices
};

/// A copy sorted by one mode: nonempty rows, and for each its nonzeros' other indices as keys of 4, 8 or 16 bytes. The
/// sorted mode itself has no bits in the layout.
///
/// It may be cut into tiles, so that the rows of the other factors that a tile needs stay in a cache: entries are then
/// sorted by tile and within a tile by row, a key keeps the indices counted from where its tile begins, and what is
/// said of rows holds of a tile's piece of a row.
struct SortedView {
  std::span<const i64> dims; // host
  int mode = 0;
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  KeyLayout layout;
  int key_bytes = 8; // 4: keys are u32; 8: u64; 16: u128
  const void *keys = nullptr;
  const void *values = nullptr;
  i64 rows = 0;                   // nonempty rows, of all tiles together
  const i64 *row_index = nullptr; // [rows] ascending, in a tile those of its heavy rows and those of its light rows
  const i64 *row_begin = nullptr; // [rows + 1] first nonzero of each row
  i64 tiles = 1;
  const i64 *tile_begin = nullptr; // [tiles + 1] first row of each tile
  const i64 *tile_base = nullptr;  // [tiles * order] added to the decoded indices
  // With more than one tile only. Rows that hold a large part of the nonzeros are heavy; they come first in a tile.
  const i64 *tile_light = nullptr; // [tiles] first light row of each tile
  std::span<const i64> heavy_rows; // ascending
  std::span<const i64> heavy_cuts; // tiles that begin equal shares of the nonzeros in heavy rows, 0 to tiles
  std::span<const i64> shares;     // rows that begin equal shares of those in light rows, 0 to dims[mode]
  // Where only some entries are there, as of a streamed tensor: the rows that hold them. Else {0, 0}.
  Range rows_there;
};

/// All elements, first index fastest, no gaps.
struct DenseView {
  std::span<const i64> dims; // host
  ValueType type = ValueType::f64;
  const void *values = nullptr;
};

using TensorView = std::variant<CooView, BlcoView, SortedView, DenseView>;

inline std::span<const i64> dims_of(const TensorView &x) {
  return std::visit([](const auto &v) { return v.dims; }, x);
}
inline ValueType type_of(const TensorView &x) {
  return std::visit([](const auto &v) { return v.type; }, x);
}
/// Stored entries; of a dense tensor its elements.
i64 entries_of(const TensorView &x);

// ---- arguments ----

/// How threads that work on entries in no order of rows (coordinates, BLCO) keep their sums into one row apart. The
/// entries of sorted copies and dense tensors belong to rows already; there only `owner` means anything.
enum class Conflicts {
  automatic, // what the backend expects to be fastest
  privatize, // each adds to rows of its own, which are merged
  atomic,    // all add to the same rows, with atomic instructions
  owner,     // each row's terms are added by one, in stored order, whatever the number of threads
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
};

/// Columns of the copies in f32 that mttkrp is given: whole 16 bytes a row.
constexpr i64 gathered_columns(i64 rank) noexcept { return (rank + 3) / 4 * 4; }

/// Whether it pays on a GPU to read rows from copies in f32: a column of a factor takes 20 bytes a row to copy (two
/// passes read 8, one writes 4), and what an entry fetches of it is 4 bytes less.
constexpr bool pays_to_gather(std::span<const i64> dims, i64 nnz) noexcept {
  double rows = 0;
  for (const i64 dim : dims)
    rows += static_cast<double>(dim);
  return 4 * static_cast<double>(nnz) * static_cast<double>(dims.size() - 1) > 20 * rows;
}

/// What a backend's machine can do with all its threads; 0: not known.
struct Rates {
  double read = 0;        // bytes a second, one after the other, from memory
  double near_rows = 0;   // bytes a second of rows in no order, from a first-level cache
  double middle_rows = 0; // the same from a second-level cache
  double far_rows = 0;    // the same from memory
  double operations = 0;  // a second, of multiply-adds in f64; each counts two
};

/// What a function would do, told from sizes alone. The bytes are of memory that it takes for a while.
struct Forecast {
  std::string kernel;    // how it goes over the entries; empty: the backend does not say
  std::string conflicts; // how sums into one row are kept apart
  double bytes = 0;
  double seconds = 0; // 0: the backend does not say
};

enum class NormKind { two, max };

/// What kept normal equations from being factored: a value that is not finite, or an eigen-decomposition that did not
/// converge.
enum class SolveFailure : i64 { none = 0, not_finite = 1, no_convergence = 2 };

/// The largest condition number that is told: beyond it rounding alone decides the smallest eigenvalue.
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

/// A sentence about a failed solve; empty if it did not fail.
std::string failure_text(const SolveRecord &record, i64 rank);

class Building; // kernels/building.hpp

/// Keeps copies on a device that it can do without.
class Keeper {
public:
  virtual ~Keeper() = default;
  /// Gives back at least so many bytes of a memory(), if it has them; called from any thread. They are free when the
  /// calls that work on them have ended. What was asked for only a while may be taken again where there is room.
  virtual void give_back(const void *memory, i64 bytes, bool for_a_while) = 0;
};

// ---- the kernels ----

/// One worker's device. Functions may run asynchronously in call order; download waits for what came before.
/// R x R matrices and scalars are f64, row-major without gaps, in backend memory: an iteration asks for no number of
/// theirs before its end, so that a device never waits for the host. A backend is used by one thread at a time. Memory
/// errors are thrown as Status::host_memory or device_memory.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::string describe() const = 0; // "cpu, 2 threads, AVX-512"
  virtual int threads() const noexcept = 0;

  virtual void *allocate(i64 bytes, const char *what) = 0;
  /// Null where a device has too little free memory, for which allocate would ask keepers.
  virtual void *try_allocate(i64 bytes, const char *what) { return allocate(bytes, what); }
  virtual void release(void *memory) noexcept = 0;
  virtual void upload(void *to, const void *from_host, i64 bytes) = 0;
  virtual void download(void *to_host, const void *from, i64 bytes) = 0;
  /// All that was asked for so far is done when this returns.
  virtual void wait() {}

  /// Gives a number to the moment at which all that was asked for so far is done.
  virtual void mark(std::size_t moment);
  /// From one marked moment to another; waits for both.
  virtual double seconds_between(std::size_t first, std::size_t second);

  /// Names the memory that the kernels work on: null for the host's, else the same for all backends of one GPU.
  virtual const void *memory() const noexcept { return nullptr; }

  // ---- for memory() that is not the host's: copies that stay there, and copies that pass through ----

  /// A copy of host memory for all backends with this memory(), complete when this returns, which may outlive the
  /// backend. Null if it does not fit the memory or what the backend may keep.
  virtual std::shared_ptr<const void> keep(const void *host, i64 bytes, const char *what);

  /// How many bytes keep can still give, with some memory left to work in.
  virtual i64 room() const;

  /// What to ask for memory when an allocation fails.
  virtual void ask_when_short(std::weak_ptr<Keeper>) {}
  /// Asks now, until keep can give so many bytes or nobody has more.
  virtual void make_room(i64 /*bytes*/) {}

  /// Makes copies out of this host memory as fast as they can be while the result lives; null where there is nothing
  /// to do or nothing can be done.
  virtual std::shared_ptr<const void> pin(const void *, i64 /*bytes*/) { return nullptr; }

  // Copies to buffers beside the kernels. Buffers have small numbers; each goes round fetch, await, work, done.

  /// Copies into memory of this buffer when the work before its last done() has ended.
  virtual void fetch(int buffer, void *to, const void *from_host, i64 bytes);
  /// What is called from now on works when all that was fetched into the buffer is there.
  virtual void await(int /*buffer*/) noexcept {}
  /// What was called so far is what works on the buffer, or allocated it.
  virtual void done(int /*buffer*/) {}

  /// Before a caller's array in this memory() is copied: what is called from now on works after all that the caller has
  /// started on the device, or on the stream that is followed. Throws Status::argument, naming the array, if it is
  /// somewhere else.
  virtual void borrow(const void *array, std::string_view name);
  /// The caller's stream, which must outlive this or be followed no longer; null: none. Throws Status::argument if it
  /// is no stream of the device.
  virtual void follow(void *stream);

  /// Takes a caller's entries, of checked dims, from the host's memory or this memory() to build a tensor of them here.
  /// Null where the host builds: on backends that work in its memory, and where there is too little memory.
  virtual std::unique_ptr<Building> begin_building(const EntriesView &entries);
  /// How much of what keep can give building takes besides copies that are made already; 0 where it takes other memory.
  virtual i64 room_to_build(const EntriesView &) const { return 0; }

  virtual void mttkrp(const TensorView &x, const MttkrpArgs &args) = 0;

  // ---- for the plan; a backend that says nothing here works all the same ----

  /// Measured when first asked for, once a process.
  virtual Rates rates() const { return {}; }
  /// What mttkrp would do at these rates. Of views and matrices only sizes are looked at: pointers may be null.
  virtual Forecast forecast_mttkrp(const TensorView &, const MttkrpArgs &, const Rates &) const { return {}; }
  /// What bringing a factor up to date from its MTTKRP takes: the solve, norms and the Gram matrix.
  virtual Forecast forecast_update(i64 /*rows*/, i64 /*rank*/, ValueType, const Rates &) const { return {}; }

  // ---- the others ----

  /// Whether mttkrp of such an f64 tensor is faster with f32 copies of the factors, and takes them.
  virtual bool gathers_f32(const TensorView &) const { return false; }

  /// to := a, of f64, in f32; columns that `to` has beyond a's are zeros. With `exponents` each column is divided by
  /// 2^exponents[r] first, which brings its largest magnitude into [1/2, 1): nothing overflows, and what underflows is
  /// below 2^-125 of that. A column of zeros has exponent 0.
  virtual void to_f32(ConstMatrix a, Matrix to, double *exponents) = 0;

  // A caller's column-major matrix is a ConstMatrix of its columns: row r of that is column r.

  /// to[k, r] := from[r, rows[k]], both of one type; `rows`, in backend memory, null: k itself.
  virtual void gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) = 0;

  /// to[r, rows[k]] := from[k, r]; the other elements of `to` are not written.
  virtual void scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) = 0;

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

  /// a := m f^T f, accumulated in f64. With `weights`, a diag(weights) was the factor so far, and where eigenvalues
  /// were dropped it keeps its part in their directions, which m says nothing of: a := a diag(weights) + (m - a
  /// diag(weights) v) f^T f. Without that part the fit could fall. a is not m.
  virtual void solve_normal(const NormalEquations &equations, ConstMatrix m, const double *weights, Matrix a) = 0;

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

  /// a[i, r] := uniform in [0, 1) from (seed, mode, first_row + i, r).
  virtual void random_uniform(Matrix a, u64 seed, int mode, i64 first_row) = 0;

  /// Over stored entries in `entries`: out[0] := sum of (x - m)^2, out[1] := sum of m^2, out[2] := sum of x m, where m
  /// is the model's value there: sum over r of weights[r] * product of factors.
  virtual void compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
                       double *out) = 0;

private:
  std::vector<std::chrono::steady_clock::time_point> moments_; // of a backend that works at once
};

/// Backend memory, owned.
class BackendBuffer {
public:
  BackendBuffer() = default;
  BackendBuffer(Backend &backend, i64 bytes, const char *what)
      : backend_(&backend), data_(backend.allocate(bytes, what)), bytes_(bytes) {}
  /// Empty where try_allocate gives none.
  static BackendBuffer of_free(Backend &backend, i64 bytes, const char *what) {
    BackendBuffer buffer;
    buffer.data_ = backend.try_allocate(bytes, what);
    if (buffer.data_ != nullptr) {
      buffer.backend_ = &backend;
      buffer.bytes_ = bytes;
    }
    return buffer;
  }
  BackendBuffer(const BackendBuffer &) = delete;
  BackendBuffer &operator=(const BackendBuffer &) = delete;
  BackendBuffer(BackendBuffer &&other) noexcept { swap(other); }
  BackendBuffer &operator=(BackendBuffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~BackendBuffer() {
    if (backend_ != nullptr)
      backend_->release(data_);
  }
  void *data() const noexcept { return data_; }
  double *f64() const noexcept { return static_cast<double *>(data_); }
  i64 bytes() const noexcept { return bytes_; }

private:
  void swap(BackendBuffer &other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  Backend *backend_ = nullptr;
  void *data_ = nullptr;
  i64 bytes_ = 0;
};

} // namespace td::kernels
