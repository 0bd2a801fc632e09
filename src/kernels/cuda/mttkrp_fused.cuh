// The fused MTTKRP of a dense tensor (dense_layout.hpp): chunks of the tensor and of the Khatri-Rao product meet on the
// tensor cores, in f64 or, of f32, in pairs of TensorFloat-32. Some warps copy, some chunks ahead and asynchronously;
// the others multiply. The tensor is read once for each tile of columns, all of which work on the same chunks at the
// same time, so that it comes from memory once. Rows of the Khatri-Rao product are made shortly before, no more at a
// time than the second-level cache holds: made by the copying warps, with a stage less, it all took 1.2 times as long,
// since the few multiplications in f64 that it takes wait for the tensor cores, whose pipe they share (H200, rank 500).
//
// The pairs of a row tile and a chunk are dealt out to blocks in equal neighbouring ranges. A block keeps sums of its
// own for the rows that it meets; they are added up in the order of blocks, so results are the same in each run. Where
// the rows are those of the result and many, a block writes tiles that it has alone, and keeps sums of its first and
// last tile.
#pragma once

#include "kernels/cuda/dense_layout.hpp"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/pipeline.cuh"

namespace td::kernels::cuda::fused {

/// A factor whose rows are multiplied by; without one, data is null: the mode itself.
template <class T> struct Mode {
  const T *data;
  i64 ld;
  i64 dim;
};

/// How a chunk of the tensor is copied: element by element, or 16 bytes at a time, which begin where neighbours in
/// memory begin or, where these begin anywhere, up to 16 bytes before.
enum class Copies { elements, wide, shifted };

template <class T> struct Job {
  const T *values;
  const T *values_end;
  Copies copies;
  int shift; // how far the first element begins behind 16 bytes, of a tensor whose copies are shifted; elements
  int row_modes;
  Mode<T> modes[max_order]; // of the rows, first to last
  i64 rows;                 // of the product
  i64 inner;
  i64 count;
  i64 dim; // of the mode, of which `count` from `first` on are rows
  i64 first;
  i64 depth_whole; // of the tensor, of which `depth` are summed over
  i64 row_step;    // from row to row in the tensor, were all of the mode's rows taken
  i64 depth;
  i64 depth_step;         // from one to the next in the tensor
  const double *products; // rows of the Khatri-Rao product, one for each of the depth; or pair_rows
  const double *scales;   // [rank] that the products of a column are to be multiplied by; null: 1
  i64 product_ld;
  bool pairs; // of products: 16 bytes at a time; a row has an even number
  u32 chunks;
  u32 whole_tiles; // that have all of their rows
  u32 whole_chunks;
  i64 units;  // pairs of a row tile and a chunk
  i64 blocks; // of each column tile
  i64 rank;
  int columns; // of a tile
  int column_tiles;
  i64 slots;
  double *partial; // [blocks][column_tiles][slots][columns]
  bool direct;     // DenseLayout::direct
  bool grows;      // what is written directly is added
  bool out_f64;
  void *out; // row `first` of the result
  i64 out_ld;
};

template <class T> __device__ inline u64 quotient(T a, T b) {
  const auto x = static_cast<u64>(a);
  const auto y = static_cast<u64>(b);
  if ((x | y) >> 32 == 0)
    return static_cast<u32>(x) / static_cast<u32>(y);
  return x / y;
}

__device__ inline i64 remainder(i64 a, i64 b) { return a - static_cast<i64>(quotient(a, b)) * b; }

/// What a block of threads has in shared memory: chunks of the tensor and of the Khatri-Rao product, in stages that
/// producers fill and consumers empty, and rows on their way to the block's sums.
template <class T, Multiply How, bool Leading, int Across, int Count> struct Stages {
  static constexpr int columns = 32 * Across;
  static constexpr int depth = dense_depth(Across, How);
  static constexpr int x_ld = Leading ? dense_rows + 32 / static_cast<int>(sizeof(T)) : depth + 4;
  static constexpr int k_ld = columns + dense_padding(How);
  static constexpr int count = Count;

  /// Four numbers a column of each four rows of pairs.
  __device__ float4 *pairs(int stage) { return reinterpret_cast<float4 *>(&products[stage][0][0]); }

  alignas(16) double products[count][depth][k_ld];
  double rows[32][k_ld];
  i64 offsets[2][dense_rows];
  Barrier full[count];
  Barrier empty[count];
  alignas(16) T x[count][(Leading ? depth : dense_rows) * x_ld];
};

inline constexpr int producers = 128; // threads

/// Rows of four numbers, halves of what TensorFloat-32 makes of rows k and k + 4 of a Khatri-Rao product, as an
/// instruction takes them: first both high halves.
constexpr i64 pair_rows(i64 depth) { return (depth + 7) / 8 * 4; }

/// Where in its units a producer or consumer is.
struct Cursor {
  u32 tile;
  u32 chunk;
  u32 left;
  int stage = 0;
  u32 round = 0; // how often all stages have been used, its lowest bit

  template <class T> __device__ explicit Cursor(const Job<T> &job) {
    const Range mine = part_of({0, job.units}, blockIdx.x / job.column_tiles, job.blocks);
    tile = static_cast<u32>(mine.begin / job.chunks);
    chunk = static_cast<u32>(mine.begin - i64{tile} * job.chunks);
    left = static_cast<u32>(mine.end - mine.begin);
  }
  template <int Stages> __device__ void next_stage() {
    if (++stage == Stages) {
      stage = 0;
      round ^= 1;
    }
    --left;
  }
};

/// A thread that copies chunks of the tensor and of the Khatri-Rao product.
template <class T, Multiply How, bool Leading, int Across, int Count> class Producer {
public:
  using Shared = Stages<T, How, Leading, Across, Count>;
  static constexpr int depth = Shared::depth;
  static constexpr int each = dense_rows * depth / producers; // elements of a chunk that a thread copies
  static constexpr int wide = 16 / static_cast<int>(sizeof(T));

  __device__ Producer(const Job<T> &job, Shared &shared) : job_(job), shared_(shared), at_(job) {
    first_column_ = i64{blockIdx.x % job.column_tiles} * job.columns;
  }

  __device__ void run() {
    list_rows(at_.tile);
    bool enters = true;
    while (at_.left > 0) {
      if (enters) {
        meet();
        list_rows(at_.tile + 1); // read after the next meeting
        start_tile();
      }
      shared_.empty[at_.stage].wait(at_.round ^ 1);
      const bool whole = at_.tile < job_.whole_tiles && at_.chunk < job_.whole_chunks;
      if (job_.copies == Copies::shifted) // whose last piece is behind its chunk
        whole &&at_.chunk + 1 < job_.chunks ? copy_shifted<true>() : copy_shifted<false>();
      else if (job_.copies == Copies::wide)
        whole ? copy<wide, true>() : copy<wide, false>();
      else
        whole ? copy<1, true>() : copy<1, false>();
      copy_products();
      shared_.full[at_.stage].arrive_after_copies();
      at_.template next_stage<Shared::count>();
      enters = ++at_.chunk == job_.chunks;
      if (enters) {
        at_.chunk = 0;
        ++at_.tile;
      }
    }
    await_copies();
  }

private:
  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ void meet() {
    __syncwarp(); // the barrier takes whole warps
    asm volatile("bar.sync 1, %0;" ::"n"(producers) : "memory");
  }

  /// Where the rows of a tile begin in the tensor; -1: there is no such row.
  __device__ void list_rows(u32 tile) {
    const i64 row = i64{tile} * dense_rows + thread();
    i64 at = -1;
    if (row < job_.rows) {
      const auto upper = static_cast<i64>(quotient(row, job_.inner));
      const auto outer = static_cast<i64>(quotient(upper, job_.count));
      const i64 i = job_.first + upper - outer * job_.count;
      at = job_.row_step * (row - upper * job_.inner + job_.inner * (i + job_.dim * outer));
    }
    shared_.offsets[tile % 2][thread()] = at;
  }

  /// Finds where to copy from where rows are of leading modes: neighbours are copied together there, and are as far
  /// from chunk to chunk in each tile.
  __device__ void start_tile() {
    if constexpr (Leading) {
      const int together = job_.copies == Copies::wide ? wide : 1;
      const int row = thread() * together % dense_rows;
      const int k = thread() * together / dense_rows;
      from_ = job_.values + max(shared_.offsets[at_.tile % 2][row], i64{0}) +
              (i64{at_.chunk} * depth + k) * job_.depth_step;
    }
  }

  template <int Wide, bool Whole> __device__ void copy() {
    constexpr int size = Wide * static_cast<int>(sizeof(T));
    constexpr int x_ld = Shared::x_ld;
    if constexpr (Leading) {
      constexpr int across = dense_rows / Wide;
      const int row = thread() % across * Wide;
      T *const to = shared_.x[at_.stage] + thread() / across * x_ld + row;
      // Where some of the rows that are copied together are not asked for, they are of the tensor all the same.
      const bool there = i64{at_.tile} * dense_rows + row < job_.rows;
      const i64 jump = producers / across * job_.depth_step;
      const T *from = from_;
#pragma unroll
      for (int j = 0; j < each / Wide; ++j, from += jump) {
        constexpr int step = producers / across * x_ld;
        if constexpr (Whole) {
          copy_all<size>(to + j * step, from);
        } else {
          const bool in = there && i64{at_.chunk} * depth + thread() / across + j * (producers / across) < job_.depth;
          copy_or_zero<size>(to + j * step, in ? from : job_.values, in ? size : 0);
        }
      }
      from_ = from;
    } else {
      constexpr int across = depth / Wide;
      constexpr int batch = each / Wide < 8 ? each / Wide : 8;
      const int k = thread() % across * Wide;
      T *to = shared_.x[at_.stage] + thread() / across * x_ld + k;
      const T *const from = job_.values + i64{at_.chunk} * depth + k;
      const i64 *offsets = shared_.offsets[at_.tile % 2] + thread() / across;
#pragma unroll 1
      for (int done = 0; done < each / Wide; done += batch) {
        i64 at[batch]; // all of them first: what is asked for after a copy waits for what was asked for before
#pragma unroll
        for (int j = 0; j < batch; ++j)
          at[j] = offsets[j * (producers / across)];
#pragma unroll
        for (int j = 0; j < batch; ++j) {
          constexpr int step = producers / across * x_ld;
          if constexpr (Whole) {
            copy_all<size>(to + j * step, from + at[j]);
          } else {
            const bool in = at[j] >= 0 && i64{at_.chunk} * depth + k < job_.depth;
            copy_or_zero<size>(to + j * step, in ? from + at[j] : job_.values, in ? size : 0);
          }
        }
        offsets += batch * (producers / across);
        to += batch * (producers / across) * x_ld;
      }
    }
  }

  /// Neighbours in memory, from a row's beginning or a row of the depth's, begin up to `wide` - 1 elements later than
  /// what is copied of them: one piece more than they have. What comes behind them is multiplied by zeros or belongs to
  /// rows that are not there.
  template <bool Whole> __device__ void copy_shifted() {
    constexpr int across = (Leading ? dense_rows : depth) / wide;
    constexpr int down = Leading ? depth : dense_rows;
    constexpr int step = producers / across;
    const int k = thread() % across * wide;
#pragma unroll 1
    for (int line = thread() / across; line < down; line += 4 * step) {
      const i64 at[4] = {begin_of(line), begin_of(line + step), begin_of(line + 2 * step), begin_of(line + 3 * step)};
#pragma unroll
      for (int j = 0; j < 4; ++j)
        copy_piece<Whole>(line + j * step, k, at[j]);
    }
    if (thread() < down)
      copy_piece<Whole>(thread(), across * wide, begin_of(thread()));
  }
  /// Where a line of a chunk begins in the tensor, or a row of its depth's; -1: nowhere.
  __device__ i64 begin_of(int line) const {
    const i64 at = shared_.offsets[at_.tile % 2][Leading ? 0 : line];
    const i64 first = i64{at_.chunk} * depth;
    return Leading ? at + (first + line) * job_.depth_step : at < 0 ? at : at + first;
  }
  template <bool Whole> __device__ void copy_piece(int line, int k, i64 at) const {
    const T *const from = job_.values + (at & ~i64{wide - 1}) + k;
    T *const to = shared_.x[at_.stage] + line * Shared::x_ld + k;
    if constexpr (Whole) {
      copy_all<16>(to, from);
      return;
    }
    const i64 left = at < 0 ? 0 : job_.values_end - from;
    if (left >= wide || left <= 0) {
      copy_or_zero<16>(to, left > 0 ? from : job_.values, left > 0 ? 16 : 0);
      return;
    }
    // The tensor's last elements: nothing is read beyond them.
    for (int w = 0; w < wide; ++w)
      copy_or_zero<sizeof(T)>(to + w, w < left ? from + w : job_.values, w < left ? static_cast<int>(sizeof(T)) : 0);
  }

  /// Columns beyond the rank and rows beyond the depth are zeros.
  __device__ void copy_products() {
    if constexpr (How == Multiply::tf32_pairs)
      copy_pairs();
    else
      copy_numbers();
  }
  __device__ void copy_pairs() {
    const i64 first = i64{at_.chunk} * (depth / 2);
    const auto *const all = reinterpret_cast<const float4 *>(job_.products);
    const float4 *const from = all + first * job_.product_ld + first_column_;
    const auto rows = static_cast<int>(min(pair_rows(job_.depth) - first, i64{depth / 2}));
    const auto columns = static_cast<int>(min(job_.rank - first_column_, i64{Shared::columns}));
#pragma unroll
    for (int j = 0; j < Shared::columns * depth / 2 / producers; ++j) {
      const int k = (thread() + j * producers) / Shared::columns;
      const int c = (thread() + j * producers) % Shared::columns;
      const bool there = k < rows && c < columns;
      copy_or_zero<16>(&shared_.pairs(at_.stage)[k * Shared::k_ld + c], there ? from + k * job_.product_ld + c : all,
                       there ? 16 : 0);
    }
  }
  __device__ void copy_numbers() {
    constexpr int pairs = Shared::columns / 2;
    const i64 first = i64{at_.chunk} * depth;
    const double *const from = job_.products + first * job_.product_ld + first_column_;
    const auto rows = static_cast<int>(min(job_.depth - first, i64{depth}));
    const auto columns = static_cast<int>(min(job_.rank - first_column_, i64{Shared::columns}));
#pragma unroll
    for (int j = 0; j < pairs * depth / producers; ++j) {
      const int k = (thread() + j * producers) / pairs;
      const int c = (thread() + j * producers) % pairs * 2;
      const int there = k < rows ? columns - c : 0;
      const double *const at = there > 0 ? from + k * job_.product_ld + c : job_.products;
      double *const to = &shared_.products[at_.stage][k][c];
      if (job_.pairs) {
        copy_or_zero<16>(to, at, there > 0 ? 16 : 0);
      } else {
        copy_or_zero<8>(to, at, there > 0 ? 8 : 0);
        copy_or_zero<8>(to + 1, there > 1 ? at + 1 : job_.products, there > 1 ? 8 : 0);
      }
    }
  }

  const Job<T> &job_;
  Shared &shared_;
  Cursor at_;
  i64 first_column_;
  const T *from_ = nullptr; // where the thread copies from next, of a leading side
};

/// What a lane holds of 32 rows and 32 columns: of row i * 8 + lane / 4 and column j * 8 + lane % 4 * 2 + e.
template <class Sum> using Sums = Sum[4][4][2];

/// A warp that holds 32 rows and 32 columns of a product.
template <class T, Multiply How, bool Leading, int Across, int Count> class Consumer {
public:
  using Shared = Stages<T, How, Leading, Across, Count>;
  static constexpr int threads = 128 * Across;

  __device__ Consumer(const Job<T> &job, Shared &shared)
      : job_(job), shared_(shared), at_(job), thread_(static_cast<int>(threadIdx.x) - producers) {
    const i64 column = i64{blockIdx.x % job.column_tiles} * job.columns;
    const int columns = min(job.columns, static_cast<int>(job.rank - column)) - across() * 32;
    eights_ = min((columns + 7) / 8, 4);
    // The thread's rows are eight apart, or its depths four, so all of them begin as far behind 16 bytes.
    if (job.copies == Copies::shifted)
      shift_ = static_cast<int>(((Leading ? lane() % 4 * job.depth_step : lane() / 4 * job.depth_whole) + job.shift) %
                                (16 / static_cast<int>(sizeof(T))));
  }

  __device__ void run() {
    double *const partial = job_.partial + i64{blockIdx.x} * job_.slots * job_.columns;
    for (i64 k = thread_; k < job_.slots * job_.columns; k += threads)
      partial[k] = 0;
    const auto first_slot = static_cast<i64>(quotient(i64{at_.tile} * dense_rows, job_.inner));
    const u32 first_tile = at_.tile;
    bool whole = at_.chunk == 0; // the tile is the block's from its first chunk on
    while (at_.left > 0) {
      shared_.full[at_.stage].wait(at_.round);
      if (eights_ > 0)
        multiply();
      __syncwarp();
      if (thread_ % 32 == 0)
        shared_.empty[at_.stage].arrive();
      at_.template next_stage<Shared::count>();
      const bool ends = ++at_.chunk == job_.chunks || at_.left == 0;
      if (ends || (How == Multiply::tf32_pairs && ++chunks_ == dense_chunks_in_f32))
        if (job_.direct && whole && at_.chunk == job_.chunks)
          write_tile();
        else
          add_tile(job_.direct && at_.tile != first_tile ? (i64{at_.tile} - 1) * dense_rows : first_slot, partial);
      if (ends) {
        at_.chunk = 0;
        ++at_.tile;
        whole = true;
      }
    }
  }

private:
  __device__ int lane() const { return thread_ % 32; }
  __device__ int down() const { return thread_ / 32 % 4; }
  __device__ int across() const { return thread_ / 128; }
  static __device__ void meet() {
    __syncwarp(); // the barrier takes whole warps
    asm volatile("bar.sync 2, %0;" ::"n"(threads) : "memory");
  }

  __device__ void multiply() {
    const int row = down() * 32 + lane() / 4;
    const int low = lane() % 4;
    const T *const x = shared_.x[at_.stage] + (Leading ? low * Shared::x_ld + row : row * Shared::x_ld + low) + shift_;
    if constexpr (How == Multiply::tf32_pairs)
      multiply_pairs(x, &shared_.pairs(at_.stage)[low * Shared::k_ld + across() * 32 + lane() / 4]);
    else
      multiply_f64(x, &shared_.products[at_.stage][low][across() * 32 + lane() / 4]);
  }

  __device__ void multiply_f64(const T *x, const double *products) {
#pragma unroll
    for (int k = 0; k < Shared::depth; k += 4) {
      double a[4];
      double b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = static_cast<double>(Leading ? x[k * Shared::x_ld + i * 8] : x[i * 8 * Shared::x_ld + k]);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        b[j] = products[k * Shared::k_ld + j * 8];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (j < 2 || j < eights_)
#pragma unroll
          for (int i = 0; i < 4; i += 2)
            mma(a[i], a[i + 1], b[j], sums_[i][j], sums_[i + 1][j]);
    }
  }

  /// The product of what TensorFloat-32 leaves of two numbers is below what f32 holds of theirs: three products do.
  __device__ void multiply_pairs(const T *x, const float4 *products) {
    float chunk[2][4][4] = {};
#pragma unroll
    for (int k = 0; k < Shared::depth; k += 8) {
      u32 high[2][4];
      u32 rest[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int row = i * 16 + e % 2 * 8;
          const int deep = k + e / 2 * 4;
          const float a = x[Leading ? deep * Shared::x_ld + row : row * Shared::x_ld + deep];
          high[i][e] = tf32_of(a);
          rest[i][e] = rest_of(a, high[i][e]);
        }
      float4 b[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        b[j] = products[k / 2 * Shared::k_ld + j * 8];
        // Products into one sum are far apart: each would wait for the one before it.
#pragma unroll
      for (int term = 0; term < 3; ++term)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (j < 2 || j < eights_)
#pragma unroll
            for (int i = 0; i < 2; ++i)
              mma(term == 0 ? rest[i] : high[i], __float_as_uint(term == 1 ? b[j].z : b[j].x),
                  __float_as_uint(term == 1 ? b[j].w : b[j].y), chunk[i][j]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          sums_[i * 2 + e / 2][j][e % 2] += chunk[i][j][e];
  }

  /// What the lane has of a tile's rows; it begins anew.
  __device__ void take_sums(Sums<double> &sums) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          sums[i][j][e] = static_cast<double>(sums_[i][j][e]);
          sums_[i][j][e] = 0;
        }
    multiply_rows(sums);
    chunks_ = 0;
  }

  /// Writes a tile's rows to the result, or adds them.
  __device__ void write_tile() {
    Sums<double> sums;
    take_sums(sums);
    job_.out_f64 ? write_rows(static_cast<double *>(job_.out), sums) : write_rows(static_cast<float *>(job_.out), sums);
  }
  template <class Out> __device__ void write_rows(Out *out, const Sums<double> &sums) const {
    const i64 first_column = i64{blockIdx.x % job_.column_tiles} * job_.columns + across() * 32 + lane() % 4 * 2;
    const auto columns = static_cast<int>(min(job_.rank - first_column, i64{8} * eights_)); // from the lane's first on
    const i64 first_row = i64{at_.tile} * dense_rows + down() * 32 + lane() / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const i64 row = first_row + i * 8;
      Out *const to = out + row * job_.out_ld + first_column;
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (row < job_.rows && j < eights_ && j * 8 + e < columns)
            to[j * 8 + e] =
                static_cast<Out>(job_.grows ? static_cast<double>(to[j * 8 + e]) + sums[i][j][e] : sums[i][j][e]);
    }
  }

  /// Adds what there is of a tile to the block's sums, 32 rows at a time.
  __device__ void add_tile(i64 first_slot, double *partial) {
    Sums<double> sums;
    take_sums(sums);
#pragma unroll 1
    for (int part = 0; part < 4; ++part) {
      meet();
      if (down() == part)
        stage_rows(sums);
      meet();
      add_rows(i64{at_.tile} * dense_rows + part * 32, first_slot, partial);
    }
  }

  /// From shared memory to the block's sums: each is one thread's, in the order of rows. Neighbouring rows that belong
  /// to one row of the result make a run; after `count` runs it is the first one's turn again.
  __device__ void add_rows(i64 row, i64 first_slot, double *partial) const {
    const int c = thread_ % Shared::columns;
    const auto there = static_cast<int>(min(i64{32}, job_.rows - row));
    if (there <= 0 || c >= job_.columns)
      return;
    const auto upper = static_cast<i64>(quotient(row, job_.inner)); // of the first row
    const auto first_end = static_cast<int>(min((upper + 1) * job_.inner - row, i64{32}));
    const auto length = static_cast<int>(min(job_.inner, i64{32}));
    const auto count = static_cast<int>(min(job_.count, i64{32}));
    const int runs = first_end >= there ? 1 : 1 + (there - first_end + length - 1) / length;
    i64 slot = upper - first_slot + thread_ / Shared::columns;
    if (slot >= job_.slots)
      slot = remainder(slot, job_.count);
    double *to = partial + slot * job_.columns + c;
    constexpr int groups = threads / Shared::columns;
    const auto next = [&] {
      slot += groups;
      to += groups * job_.columns;
      if (slot >= job_.slots) {
        slot = remainder(slot, job_.count);
        to = partial + slot * job_.columns + c;
      }
    };
    if (job_.inner == 1 && count == 32) { // each row is a run
#pragma unroll 2
      for (int d = thread_ / Shared::columns; d < there; d += groups, next())
        atomicAdd(to, shared_.rows[d][c]);
      return;
    }
#pragma unroll 1
    for (int d = thread_ / Shared::columns; d < min(runs, count); d += groups, next()) {
      double sum = 0;
#pragma unroll 1
      for (int run = d; run < runs; run += count) {
        const int begin = run == 0 ? 0 : first_end + (run - 1) * length;
        const int end = min(first_end + run * length, there);
#pragma unroll 4
        for (int k = begin; k < end; ++k)
          sum += shared_.rows[k][c];
      }
      atomicAdd(to, sum); // nobody else adds there before the next barrier; nobody waits for it
    }
  }

  __device__ void stage_rows(const Sums<double> &sums) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          shared_.rows[i * 8 + lane() / 4][across() * 32 + j * 8 + lane() % 4 * 2 + e] = sums[i][j][e];
  }

  /// Times the rows of the row side's other modes and the scales of products.
  __device__ void multiply_rows(Sums<double> &sums) const {
    const i64 column = i64{blockIdx.x % job_.column_tiles} * job_.columns + across() * 32 + lane() % 4 * 2;
    if constexpr (How == Multiply::tf32_pairs)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const double scale = column + j * 8 + e < job_.rank ? job_.scales[column + j * 8 + e] : 0.0;
#pragma unroll
          for (int i = 0; i < 4; ++i)
            sums[i][j][e] *= scale;
        }
    if (job_.row_modes == 1)
      return;
    i64 rest[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      rest[i] = min(i64{at_.tile} * dense_rows + down() * 32 + i * 8 + lane() / 4, job_.rows - 1);
#pragma unroll 1
    for (int m = 0; m < job_.row_modes; ++m) {
      const Mode<T> &mode = job_.modes[m];
#pragma unroll
      for (int i = 0; i < 4; ++i) { // whose numbers come together
        const auto upper = static_cast<i64>(quotient(rest[i], mode.dim));
        const T *const from = mode.data + (rest[i] - upper * mode.dim) * mode.ld;
        rest[i] = upper;
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (mode.data != nullptr && column + j * 8 + e < job_.rank)
              sums[i][j][e] *= static_cast<double>(from[column + j * 8 + e]);
      }
    }
  }

  const Job<T> &job_;
  Shared &shared_;
  Cursor at_;
  int thread_;
  int shift_ = 0; // of rows, behind what was copied
  int eights_;    // of columns that the tile has for this warp; none if it is not positive
  Sums<std::conditional_t<How == Multiply::tf32_pairs, float, double>> sums_ = {};
  int chunks_ = 0; // that they are of
};

template <class T, Multiply How, bool Leading, int Across, int Count>
__global__ void __launch_bounds__(producers + 128 * Across, Across == 1 ? 2 : 1)
    multiply_fused(const __grid_constant__ Job<T> job) {
  extern __shared__ __align__(16) unsigned char memory[];
  using Shared = Stages<T, How, Leading, Across, Count>;
  static_assert(sizeof(Shared) == dense_shared_bytes(Leading, sizeof(T), How, Across, Count));
  auto &shared = *reinterpret_cast<Shared *>(memory);
  if (threadIdx.x < Shared::count) {
    shared.full[threadIdx.x].start(producers);
    shared.empty[threadIdx.x].start(4 * Across);
  }
  __syncthreads();
  if (threadIdx.x < producers)
    Producer<T, How, Leading, Across, Count>(job, shared).run();
  else
    Consumer<T, How, Leading, Across, Count>(job, shared).run();
}

} // namespace td::kernels::cuda::fused
