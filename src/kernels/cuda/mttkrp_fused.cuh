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

#include "kernels/cuda/early.cuh"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/mttkrp_fused.hpp"
#include "kernels/cuda/pipeline.cuh"

namespace td::kernels::cuda::fused {

/// What a block of threads has in shared memory: chunks of the tensor and of the Khatri-Rao product, in stages that
/// producers fill and consumers empty, and rows on their way to the block's sums.
template <class T, Multiply How, bool Leading, int Width, int Count, bool Lines> struct Stages {
  static constexpr int columns = Width;
  static constexpr int across = dense_across(Width); // warps beside each other
  static constexpr int depth = dense_depth(Width, How, sizeof(T));
  static constexpr int x_ld = dense_x_ld(Leading, Width, How, sizeof(T));
  static constexpr int unit = dense_unit(Width, sizeof(T));
  static constexpr bool sectors = unit * sizeof(T) == 32;
  static constexpr int k_ld = columns + dense_padding(How);
  static constexpr int count = Count;
  static constexpr bool lines = Lines;
  static constexpr bool may_be_narrow = sizeof(T) == sizeof(float) && How == Multiply::f64;

  /// Four numbers a column of each four rows of pairs.
  __device__ float4 *pairs(int stage) { return reinterpret_cast<float4 *>(&products[stage][0][0]); }
  /// A row of products of this type. Those of f32 begin where those of f64 do, so lanes read from all banks.
  template <class P> __device__ P *product_row(int stage, int k) { return reinterpret_cast<P *>(products[stage][k]); }
  template <class P> static constexpr int product_step = static_cast<int>(sizeof(double) / sizeof(P)) * k_ld;

  alignas(32) T x[count][(Leading ? depth : dense_rows) * x_ld];
  alignas(32) double products[count][depth][k_ld];
  double rows[32][k_ld];
  i64 offsets[2][dense_rows];
  Barrier full[count];
  Barrier empty[count];
};

inline constexpr int producers = 128; // threads

/// Where an element of a row of trailing modes is in shared memory. Rows of f32 that are a multiple of 32 bytes apart
/// would begin at four banks: of the second four of eight, halves of 32 bytes have changed places, so that lanes that
/// read together read different banks.
template <class Shared> __device__ constexpr int place_of(int row, int k) {
  return Shared::sectors ? k ^ (row & 4) : k;
}

/// How far a row of trailing modes begins behind the beginning of its line of `Depth` elements, a power of two. So a
/// chunk's elements are in two lines, the second of which has the next chunk's first ones: each tile has a stage more,
/// with its first line.
template <int Depth, class T> __device__ int phase_of(const Job<T> &job, u32 row) {
  return static_cast<int>((static_cast<u32>(job.shift) + job.line_shift * row) % Depth);
}

/// Rows of four numbers, halves of what TensorFloat-32 makes of rows k and k + 4 of a Khatri-Rao product, as an
/// instruction takes them: first both high halves.
constexpr i64 pair_rows(i64 depth) { return (depth + 7) / 8 * 4; }

/// Where in its units a producer or consumer is: first in the tiles that the block has alone, which blocks take in
/// turn, so that neighbouring tiles are worked on at the same time and what their edges share in memory comes once.
template <class T> struct Cursor {
  u32 tile;
  u32 chunk = 0;
  u32 left; // units
  int stage = 0;
  u32 round = 0; // how often all stages have been used, its lowest bit

  __device__ explicit Cursor(const Job<T> &all) : job(all) {
    const Range shared = shared_units(job, block());
    tile = static_cast<u32>(block());
    left = static_cast<u32>(job.own_tiles / job.blocks * job.chunks + shared.end - shared.begin);
    if (job.own_tiles == 0)
      enter(shared);
  }
  template <int Stages> __device__ void next_stage() {
    if (++stage == Stages) {
      stage = 0;
      round ^= 1;
    }
  }
  /// Whether it was the last one of a tile, or at all.
  __device__ bool next_unit() {
    --left;
    return ++chunk == job.chunks || left == 0;
  }
  __device__ void next_tile() {
    if (tile < job.own_tiles && tile + job.blocks >= job.own_tiles) {
      enter(shared_units(job, block()));
    } else {
      tile += tile < job.own_tiles ? static_cast<u32>(job.blocks) : 1;
      chunk = 0;
    }
  }
  /// The tile after this one; any if there is none.
  __device__ u32 tile_ahead() const {
    Cursor ahead = *this;
    ahead.next_tile();
    return ahead.tile;
  }
  __device__ i64 block() const { return blockIdx.x / job.column_tiles; }

private:
  __device__ void enter(Range shared) {
    tile = static_cast<u32>(quotient(shared.begin, i64{job.chunks}));
    chunk = static_cast<u32>(shared.begin - i64{tile} * job.chunks);
  }

  const Job<T> &job;
};

/// A thread that copies chunks of the tensor and of the Khatri-Rao product.
template <class T, Multiply How, bool Leading, int Width, int Count, bool Lines> class Producer {
public:
  using Shared = Stages<T, How, Leading, Width, Count, Lines>;
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
        rows_ ^= 1;
        meet();
        list_rows(at_.tile_ahead()); // read after the next meeting
        start_tile();
      }
      shared_.empty[at_.stage].wait(at_.round ^ 1);
      copy_elements(Shared::lines ? at_.chunk + 1 : at_.chunk);
      copy_products();
      shared_.full[at_.stage].arrive_after_copies();
      at_.template next_stage<Shared::count>();
      enters = at_.next_unit();
      if (enters)
        at_.next_tile();
    }
    await_copies();
  }

private:
  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ void meet() {
    __syncwarp(); // the barrier takes whole warps
    asm volatile("bar.sync 1, %0;" ::"n"(producers) : "memory");
  }

  /// A chunk, or a line. Rows that are not there are not copied: nobody looks at what is multiplied in their place.
  __device__ void copy_elements(u32 chunk) {
    const bool whole = is_whole(chunk);
    if constexpr (Leading)
      whole ? copy_rows<true, false>(chunk) : copy_rows<false, false>(chunk);
    else if (whole && rows_there_ == dense_rows)
      copy_rows<true, true>(chunk);
    else
      whole ? copy_rows<true, false>(chunk) : copy_rows<false, false>(chunk);
  }

  /// Whether all that is copied of a chunk, or line, is there, wherever it begins.
  __device__ bool is_whole(u32 chunk) const {
    const bool first = at_.tile == 0 && chunk == 0;
    if constexpr (Shared::lines)
      return !first && (chunk < job_.whole_chunks || (at_.tile > 0 && at_.tile < job_.whole_tiles));
    if (chunk >= job_.whole_chunks || job_.copies != Copies::shifted)
      return chunk < job_.whole_chunks;
    if constexpr (Leading)
      return !first && offsets()[0] + (i64{chunk + 1} * depth - 1) * job_.depth_step + dense_rows + Shared::unit <=
                           job_.tensor_end - job_.values;
    return !first && chunk + 1 < job_.chunks && (chunk + 1 < job_.whole_chunks || at_.tile + 1 < job_.whole_tiles);
  }

  /// Whole: all that is copied is there; All: the tile has all of its rows. Where each copy of a last tile was looked
  /// at by itself, all waited for its blocks, which took 1.3 times as long as the others (f32, 401x201x12x501, H200).
  /// With copies of the last row in place of those that are not there it was up to 2.5 times.
  template <bool Whole, bool All> __device__ void copy_rows(u32 chunk) {
    if constexpr (Shared::lines)
      copy_line<Whole, All>(chunk);
    else if (job_.copies == Copies::shifted)
      copy_shifted<Whole, All>();
    else if (job_.copies == Copies::wide)
      copy<wide, Whole, All>(chunk);
    else
      copy<1, Whole, All>(chunk);
  }

  /// Where the rows of a tile, the next to be entered, begin in the tensor, or the lines or units that they begin in;
  /// anything for rows that are not there.
  __device__ void list_rows(u32 tile) {
    const i64 row = min(i64{tile} * dense_rows + thread(), job_.rows - 1);
    constexpr int begins = Shared::lines ? depth : Shared::unit;
    const auto upper = static_cast<i64>(quotient(row, job_.inner));
    const auto outer = static_cast<i64>(quotient(upper, job_.count));
    const i64 i = job_.first + upper - outer * job_.count;
    const i64 of_all = row - upper * job_.inner + job_.inner * (i + job_.dim * outer);
    i64 at = job_.row_step * of_all;
    if (Leading && job_.gap > 0)
      at += static_cast<i64>(quotient(of_all, job_.low)) * job_.gap;
    if (!Leading && (job_.copies == Copies::lines || job_.copies == Copies::shifted))
      at -= phase_of<begins>(job_, static_cast<u32>(row));
    shared_.offsets[rows_ ^ 1][thread()] = at;
  }

  /// Finds where to copy from where rows are of leading modes: neighbours are copied together there, and are as far
  /// from chunk to chunk in each tile. Where lines are copied, copies the first one.
  __device__ void start_tile() {
    rows_there_ = static_cast<int>(min(job_.rows - i64{at_.tile} * dense_rows, i64{dense_rows}));
    if constexpr (Leading) {
      const bool shifted = job_.copies == Copies::shifted;
      const int together = shifted || job_.copies == Copies::wide ? wide : 1;
      const int row = thread() * together % dense_rows;
      const int k = thread() * together / dense_rows;
      const i64 at = offsets()[shifted ? 0 : row];
      from_ = job_.values + at + (i64{at_.chunk} * depth + k) * job_.depth_step;
    } else if constexpr (Shared::lines) {
      shared_.empty[at_.stage].wait(at_.round ^ 1);
      copy_elements(at_.chunk);
      shared_.full[at_.stage].arrive_after_copies();
      at_.template next_stage<Shared::count>();
    }
  }
  __device__ const i64 *offsets() const { return shared_.offsets[rows_]; }

  /// The tile's rows from the beginning of their lines on, which are aligned: nothing is read before the tensor or
  /// behind it.
  template <bool Whole, bool All> __device__ void copy_line(u32 line) {
    constexpr int across = depth / wide;
    constexpr int step = producers / across;
    const int k = thread() % across * wide;
    const T *const from = job_.values + i64{line} * depth + k;
    T *const to = shared_.x[at_.stage] + thread() / across * Shared::x_ld + k;
    const i64 *const offsets_here = offsets() + thread() / across;
    const int row = thread() / across;
    // Most rows need nothing of the line behind the last chunk.
    const int least_phase = Whole ? 0 : static_cast<int>(min(max(i64{line} * depth - job_.depth, i64{-1}), i64{depth}));
    constexpr int batch = dense_rows / step < 8 ? dense_rows / step : 8;
#pragma unroll
    for (int done = 0; done < dense_rows / step; done += batch) {
      i64 at[batch]; // all of them first, as in copy
#pragma unroll
      for (int j = 0; j < batch; ++j)
        at[j] = offsets_here[(done + j) * step];
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const int of_tile = row + (done + j) * step;
        if (All || of_tile < rows_there_)
          copy_vector<Whole>(to + (done + j) * step * Shared::x_ld,
                             Whole || phase_of<depth>(job_, at_.tile * dense_rows + of_tile) > least_phase
                                 ? from + at[j]
                                 : job_.tensor_end);
      }
    }
  }

  template <int Wide, bool Whole, bool All> __device__ void copy(u32 chunk) {
    constexpr int size = Wide * static_cast<int>(sizeof(T));
    constexpr int x_ld = Shared::x_ld;
    if constexpr (Leading) {
      constexpr int across = dense_rows / Wide;
      const int row = thread() % across * Wide;
      // Where some of the rows that are copied together are not asked for, they are of the tensor all the same.
      if (row >= rows_there_)
        return;
      T *const to = shared_.x[at_.stage] + thread() / across * x_ld + row;
      const i64 jump = producers / across * job_.depth_step;
      const T *from = from_;
#pragma unroll
      for (int j = 0; j < each / Wide; ++j, from += jump) {
        constexpr int step = producers / across * x_ld;
        const bool in = Whole || i64{chunk} * depth + thread() / across + j * (producers / across) < job_.depth;
        copy_or_zero<size>(to + j * step, in ? from : job_.values, in ? size : 0, policy_);
      }
      from_ = from;
    } else {
      constexpr int across = depth / Wide;
      constexpr int batch = each / Wide < 8 ? each / Wide : 8;
      const int k = thread() % across * Wide;
      T *to = shared_.x[at_.stage] + thread() / across * x_ld;
      const T *from = job_.values + i64{chunk} * depth + k;
      if (job_.gap > 0) {
        const i64 at = job_.depth_first + i64{chunk} * depth + k;
        from += job_.depth_first + static_cast<i64>(quotient(at, job_.low)) * job_.gap;
      }
      const i64 *offsets = this->offsets() + thread() / across;
      int left = rows_there_ - thread() / across;
#pragma unroll 1
      for (int done = 0; done < each / Wide; done += batch) {
        i64 at[batch]; // all of them first: what is asked for after a copy waits for what was asked for before
#pragma unroll
        for (int j = 0; j < batch; ++j)
          at[j] = offsets[j * (producers / across)];
#pragma unroll
        for (int j = 0; j < batch; ++j) {
          constexpr int step = producers / across;
          const bool in = Whole || i64{chunk} * depth + k < job_.depth;
          if (All || j * step < left)
            copy_or_zero<size>(to + j * step * x_ld + place_of<Shared>(thread() / across + j * step, k),
                               in ? from + at[j] : job_.values, in ? size : 0, policy_);
        }
        offsets += batch * (producers / across);
        left -= batch * (producers / across);
        to += batch * (producers / across) * x_ld; // a multiple of eight rows
      }
    }
  }

  /// Neighbours in memory, from a row's beginning or a row of the depth's, begin less than a unit later than what is
  /// copied of them: a unit more than they have. What comes behind them is multiplied by zeros
  /// or belongs to rows that are not there.
  template <bool Whole, bool All> __device__ void copy_shifted() {
    constexpr int across = (Leading ? dense_rows : depth) / wide;
    constexpr int step = producers / across;
    T *const chunk = shared_.x[at_.stage];
    constexpr int vectors = Shared::unit / wide; // of the unit more
    const int own = thread() % across * wide;
    if constexpr (Leading) {
      const int reach = rows_there_ + Shared::unit;
      T *const to = chunk + thread() / across * Shared::x_ld + own;
      const i64 jump = step * job_.depth_step;
      if (own < reach)
#pragma unroll
        for (int line = 0; line < depth; line += step, from_ += jump)
          copy_vector<Whole>(to + line * Shared::x_ld, unit_with(from_) + own);
      const int line = thread() / vectors;
      const int behind = dense_rows + thread() % vectors * wide;
      if (line < depth && behind < reach)
        copy_vector<Whole>(chunk + line * Shared::x_ld + behind,
                           unit_with(job_.values + (offsets()[0] + (i64{at_.chunk} * depth + line) * job_.depth_step)) +
                               behind);
    } else {
      T *const to = chunk + thread() / across * Shared::x_ld + place_of<Shared>(thread() / across, own);
      const T *const from = job_.values + i64{at_.chunk} * depth;
      constexpr int batch = dense_rows / step < 8 ? dense_rows / step : 8;
#pragma unroll
      for (int done = 0; done < dense_rows; done += batch * step) {
        i64 at[batch]; // all of them first, as in copy
#pragma unroll
        for (int j = 0; j < batch; ++j)
          at[j] = offsets()[thread() / across + done + j * step];
#pragma unroll
        for (int j = 0; j < batch; ++j)
          if (All || thread() / across + done + j * step < rows_there_)
            copy_vector<Whole>(to + (done + j * step) * Shared::x_ld, from + own + at[j]);
      }
      const int behind = depth + thread() % vectors * wide;
#pragma unroll
      for (int row = thread() / vectors; row < dense_rows; row += producers / vectors)
        if (All || row < rows_there_)
          copy_vector<Whole>(chunk + row * Shared::x_ld + place_of<Shared>(row, behind),
                             from + behind + offsets()[row]);
    }
  }
  /// The unit that an element is in.
  static __device__ const T *unit_with(const T *element) {
    return reinterpret_cast<const T *>(reinterpret_cast<std::uintptr_t>(element) &
                                       ~std::uintptr_t{Shared::unit * sizeof(T) - 1});
  }
  /// 16 bytes, some or all of which may be outside of the tensor unless `Whole`: zeros then. Of a leading side the rest
  /// of the line that they are in belongs to another tile; of lines the next one is wanted with the next chunk, and
  /// memory gives two neighbours sooner than one after the other.
  template <bool Whole> __device__ void copy_vector(T *to, const T *from) const {
    constexpr int line = Leading ? 16 : Shared::lines ? 256 : 128;
    if constexpr (Whole) {
      copy_or_zero<16, line>(to, from, 16, policy_);
      return;
    }
    const i64 left = from < job_.tensor ? 0 : job_.tensor_end - from;
    if (left >= wide || left <= 0) {
      copy_or_zero<16, line>(to, left > 0 ? from : job_.tensor, left > 0 ? 16 : 0, policy_);
      return;
    }
    for (int w = 0; w < wide; ++w) // the tensor's last elements
      copy_or_zero<sizeof(T)>(to + w, w < left ? from + w : job_.tensor, w < left ? static_cast<int>(sizeof(T)) : 0,
                              policy_);
  }

  /// Rows beyond the depth are zeros.
  __device__ void copy_products() {
    if constexpr (How == Multiply::tf32_pairs)
      copy_pairs();
    else if (Shared::may_be_narrow && job_.narrow != nullptr)
      copy_numbers(job_.narrow);
    else
      copy_numbers(job_.products);
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
  /// Sixteen threads copy 32 columns of a row. Columns beyond the rank are nobody's: what is multiplied there is not
  /// written.
  template <class P> __device__ void copy_numbers(const P *products) {
    constexpr int size = sizeof(P);
    constexpr int to_step = Shared::template product_step<P>;
    constexpr int groups = (Shared::columns + 31) / 32;
    constexpr int step = producers / 16;
    const int k = thread() / 16;
    const int c = thread() % 16 * 2;
    const i64 first = i64{at_.chunk} * depth;
    const auto columns = static_cast<int>(min(job_.rank - first_column_, i64{Shared::columns})) - c;
    const P *from = products + (first + k) * job_.product_ld + first_column_ + c;
    P *const to = shared_.template product_row<P>(at_.stage, k) + c;
    if (job_.pairs && at_.chunk < job_.whole_chunks) {
#pragma unroll
      for (int i = 0; i < depth; i += step, from += step * job_.product_ld)
#pragma unroll
        for (int m = 0; m < groups; ++m)
          if (m * 32 < columns)
            copy_or_zero<2 * size>(to + i * to_step + m * 32, from + m * 32);
      return;
    }
    const auto rows = static_cast<int>(min(job_.depth - first, i64{depth})) - k;
#pragma unroll 1
    for (int i = 0; i < depth; i += step, from += step * job_.product_ld)
#pragma unroll
      for (int m = 0; m < groups; ++m) {
        if (m * 32 + c >= Shared::columns)
          continue;
        const int there = i < rows ? columns - m * 32 : 0;
        const P *const at = there > 0 ? from + m * 32 : products;
        P *const pair = to + i * to_step + m * 32;
        if (job_.pairs) {
          copy_or_zero<2 * size>(pair, at, there > 0 ? 2 * size : 0);
        } else {
          copy_or_zero<size>(pair, at, there > 0 ? size : 0);
          copy_or_zero<size>(pair + 1, there > 1 ? at + 1 : products, there > 1 ? size : 0);
        }
      }
  }

  const Job<T> &job_;
  Shared &shared_;
  Cursor<T> at_;
  int rows_ = 1;       // which of the lists of rows is the tile's
  int rows_there_ = 0; // of the tile
  i64 first_column_;
  const u64 policy_ = read_once(); // of the tensor's elements
  const T *from_ = nullptr;        // where the thread copies from next, of a leading side
};

/// What a lane holds of 32 rows and some eights of columns: of row i * 8 + lane / 4 and column j * 8 + lane % 4 * 2 +
/// e.
template <class Sum, int Eights> using Sums = Sum[4][Eights][2];

/// A lane's elements of a chunk: of its four rows, eight apart, and of the depths k that are multiples of four.
template <class Shared, class T, bool Leading, bool Lines> struct Elements {
  const T *first;
  int turn; // where copies are in units of 32 bytes, how much farther those of each second k are than k tells
  __device__ T operator()(int i, int k) const {
    const T *const x = Shared::sectors && k % 8 != 0 ? first + turn : first;
    return Leading ? x[k * Shared::x_ld + i * 8] : x[i * 8 * Shared::x_ld + k];
  }
};
/// Where rows are in lines, their elements from some depth on are in the next line. Rows that are a depth apart begin
/// alike.
template <class Shared, class T> struct Elements<Shared, T, false, true> {
  static constexpr int kinds = Shared::depth / 8;
  const T *row[kinds];
  int turn[kinds];
  int jump;
  __device__ T operator()(int i, int k) const {
    return row[i % kinds][i / kinds * Shared::depth * Shared::x_ld + k + (k >= turn[i % kinds] ? jump : 0)];
  }
};

/// A warp that holds 32 rows and up to 40 columns of a product.
template <class T, Multiply How, bool Leading, int Width, int Count, bool Lines> class Consumer {
public:
  using Shared = Stages<T, How, Leading, Width, Count, Lines>;
  static constexpr int threads = 128 * Shared::across;
  static constexpr int warp_eights = Width / Shared::across / 8; // of columns, at most

  __device__ Consumer(const Job<T> &job, Shared &shared)
      : job_(job), shared_(shared), at_(job), thread_(static_cast<int>(threadIdx.x) - producers) {
    const i64 column = i64{blockIdx.x % job.column_tiles} * job.columns;
    const int of_a_warp = (job.columns / 8 + Shared::across - 1) / Shared::across; // eights, as equal as they can be
    column_ = across() * of_a_warp * 8;
    eights_ = min((min(job.columns, static_cast<int>(job.rank - column)) - column_ + 7) / 8, of_a_warp);
    // The thread's rows are eight apart, so all of them begin as far behind a unit, or its depths four, so each second
    // one does.
    const bool shifted = job.copies == Copies::shifted;
    const auto shift = [&](i64 lines) {
      return shifted
                 ? static_cast<int>((lines * (Leading ? job.depth_step : job.depth_whole) + job.shift) % Shared::unit)
                 : 0;
    };
    if constexpr (Leading) {
      shift_ = shift(lane() % 4);
      turn_ = shift(lane() % 4 + 4) - shift_;
    } else {
      const int row = lane() / 4;
      const int begin = shift(row) + lane() % 4;
      shift_ = place_of<Shared>(row, begin);
      turn_ = place_of<Shared>(row, begin + 4) - 4 - shift_;
    }
  }

  __device__ void run() {
    if (!job_.direct)
      for (i64 k = thread_; k < job_.slots * job_.columns; k += threads)
        partial()[k] = 0;
    bool enters = true;
    while (at_.left > 0) {
      if (Shared::lines && enters)
        pass_stage();
      enters = eights_ > 0 ? multiply_at_most<warp_eights>() : multiply_chunks<0>();
      if (enters || How == Multiply::tf32_pairs)
        end_tile();
      if (enters) {
        if (Shared::lines)
          release(before_);
        at_.next_tile();
      }
    }
  }

private:
  /// Up to how many eights of columns the compiler is told of: an instruction of the tensor cores that a predicate
  /// turns off takes their time nevertheless. Told, it reads all of a chunk ahead, which made f64 of up to 32 columns
  /// take 1.2 times as long, and as many eights as a warp can have up to 1.1 times (H200).
  static constexpr int most_told = sizeof(T) == sizeof(float) && Width != 64 ? warp_eights
                                   : Width > 32                              ? warp_eights - 1
                                                                             : 0;
  using ElementsHere = Elements<Shared, T, Leading, Shared::lines>;

  __device__ int lane() const { return thread_ % 32; }
  __device__ int down() const { return thread_ / 32 % 4; }
  __device__ int across() const { return thread_ / 128; }
  __device__ int first_column() const { return Shared::across == 1 ? 0 : column_; } // of the warp, in its tile
  static __device__ void meet() {
    __syncwarp(); // the barrier takes whole warps
    asm volatile("bar.sync 2, %0;" ::"n"(threads) : "memory");
  }

  /// The stage with a tile's first line, which the first chunk begins in.
  __device__ void pass_stage() {
    shared_.full[at_.stage].wait(at_.round);
    before_ = at_.stage;
    at_.template next_stage<Shared::count>();
  }
  __device__ void release(int stage) { shared_.empty[stage].arrive_as_warp(lane()); }

  template <int Eights> __device__ bool multiply_at_most() {
    if constexpr (Eights > 1 && Eights - 1 <= most_told)
      if (eights_ < Eights)
        return multiply_at_most<Eights - 1>();
    return multiply_chunks<Eights>();
  }

  /// Multiplies the tile's chunks: all of them, and says so, or as many as sums in f32 may take. Whether the next one
  /// is there is asked for before one is multiplied: the answer takes as long as some multiplications.
  template <int Eights> __device__ bool multiply_chunks() {
    bool there = false;
    for (bool ends = false; !ends;) {
      if (!there)
        shared_.full[at_.stage].wait(at_.round);
      Cursor<T> next = at_;
      next.template next_stage<Shared::count>();
      there = shared_.full[next.stage].test(next.round);
      if constexpr (Eights > 0)
        multiply<Eights>(elements());
      release(Shared::lines ? before_ : at_.stage);
      before_ = at_.stage;
      at_.template next_stage<Shared::count>();
      ends = at_.next_unit();
      if (!ends && How == Multiply::tf32_pairs && ++chunks_ == dense_chunks_in_f32)
        return false;
    }
    return true;
  }

  __device__ ElementsHere elements() const {
    const int row = down() * 32 + lane() / 4;
    const int low = lane() % 4;
    ElementsHere x;
    if constexpr (!Shared::lines) {
      x.first = shared_.x[at_.stage] + shift_ + (Leading ? low * Shared::x_ld + row : row * Shared::x_ld);
      x.turn = turn_;
    } else {
#pragma unroll
      for (int i = 0; i < ElementsHere::kinds; ++i) {
        const int begin = phase_of<Shared::depth>(job_, at_.tile * dense_rows + row + i * 8) + low;
        x.row[i] = shared_.x[before_] + (row + i * 8) * Shared::x_ld + begin;
        x.turn[i] = Shared::depth - begin;
      }
      x.jump = (at_.stage - before_) * static_cast<int>(sizeof(shared_.x[0]) / sizeof(T)) - Shared::depth;
    }
    return x;
  }

  template <int Eights> __device__ void multiply(const ElementsHere &x) {
    const int column = first_column() + lane() / 4;
    const int low = lane() % 4;
    if constexpr (How == Multiply::tf32_pairs)
      multiply_pairs<Eights>(x, &shared_.pairs(at_.stage)[low * Shared::k_ld + column]);
    else if (Shared::may_be_narrow && job_.narrow != nullptr)
      multiply_f64<Eights>(x, shared_.template product_row<float>(at_.stage, low) + column);
    else
      multiply_f64<Eights>(x, shared_.template product_row<double>(at_.stage, low) + column);
  }

  template <int Eights, class P> __device__ void multiply_f64(const ElementsHere &x, const P *products) {
    // The compiler would spill what it reads ahead of more steps. Of rows in lines two steps took 0.98 of the time on
    // average, 0.91 to 1.05 (H200).
    constexpr bool told = Eights <= most_told && sizeof(T) == sizeof(double);
    constexpr int ahead = told && Shared::lines ? 2 : told && (Width > 64) ? 4 : Shared::depth / 4;
#pragma unroll(ahead)
    for (int k = 0; k < Shared::depth; k += 4) {
      double a[4];
      P b[Eights];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = static_cast<double>(x(i, k));
#pragma unroll
      for (int j = 0; j < Eights; ++j)
        b[j] = products[k * Shared::template product_step<P> + j * 8];
#pragma unroll
      for (int j = 0; j < Eights; ++j)
        if (Eights <= most_told || j < 2 || j < eights_) {
          const auto wide = static_cast<double>(b[j]);
#pragma unroll
          for (int i = 0; i < 4; i += 2)
            mma(a[i], a[i + 1], wide, sums_[i][j], sums_[i + 1][j]);
        }
    }
  }

  /// The product of what TensorFloat-32 leaves of two numbers is below what f32 holds of theirs: three products do.
  template <int Eights> __device__ void multiply_pairs(const ElementsHere &x, const float4 *products) {
    float chunk[2][Eights][4] = {};
#pragma unroll
    for (int k = 0; k < Shared::depth; k += 8) {
      u32 high[2][4];
      u32 rest[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float a = x(i * 2 + e % 2, k + e / 2 * 4);
          high[i][e] = tf32_of(a);
          rest[i][e] = rest_of(a, high[i][e]);
        }
      float4 b[Eights];
#pragma unroll
      for (int j = 0; j < Eights; ++j)
        b[j] = products[k / 2 * Shared::k_ld + j * 8];
        // Products into one sum are far apart: each would wait for the one before it.
#pragma unroll
      for (int term = 0; term < 3; ++term)
#pragma unroll
        for (int j = 0; j < Eights; ++j)
#pragma unroll
          for (int i = 0; i < 2; ++i)
            mma(term == 0 ? rest[i] : high[i], __float_as_uint(term == 1 ? b[j].z : b[j].x),
                __float_as_uint(term == 1 ? b[j].w : b[j].y), chunk[i][j]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < Eights; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          sums_[i * 2 + e / 2][j][e % 2] += chunk[i][j][e];
  }

  __device__ double *partial() const { return job_.partial + i64{blockIdx.x} * job_.slots * job_.columns; }

  /// Writes what there is of a tile to the result, or to the block's sums of it, or adds it to these, 32 rows at a
  /// time. What it needs is computed here: the registers are needed elsewhere.
  __device__ void end_tile() {
    Sums<double, warp_eights> sums;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < warp_eights; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          sums[i][j][e] = static_cast<double>(sums_[i][j][e]);
          sums_[i][j][e] = 0;
        }
    chunks_ = 0;
    multiply_rows(sums);
    const i64 begin = shared_units(job_, at_.block()).begin;
    const auto first_tile = static_cast<i64>(quotient(begin, i64{job_.chunks}));
    const i64 tile = at_.tile;
    if (job_.direct) {
      const i64 at = tile * dense_rows * job_.out_ld + i64{blockIdx.x % job_.column_tiles} * job_.columns;
      // Others have some of it.
      const bool shared = at_.chunk < job_.chunks || (at_.tile >= job_.own_tiles && tile * job_.chunks < begin);
      if (shared || job_.out_f64)
        write_rows(shared ? partial() + (tile > first_tile ? 0 : dense_rows) * job_.columns
                          : static_cast<double *>(job_.out) + at,
                   shared ? job_.columns : job_.out_ld, !shared && job_.grows, sums);
      else
        write_rows(static_cast<float *>(job_.out) + at, job_.out_ld, job_.grows, sums);
      return;
    }
    const auto first_slot = static_cast<i64>(quotient(first_tile * dense_rows, job_.inner));
#pragma unroll 1
    for (int part = 0; part < 4; ++part) {
      meet();
      if (down() == part)
        stage_rows(sums);
      meet();
      add_rows(tile * dense_rows + part * 32, first_slot, partial());
    }
  }

  /// `to`: for the first row and column of the tile.
  template <class Out>
  __device__ void write_rows(Out *to, i64 ld, bool grows, const Sums<double, warp_eights> &sums) const {
    const int column = first_column() + lane() % 4 * 2;
    const auto columns = static_cast<int>(min(job_.rank - i64{blockIdx.x % job_.column_tiles} * job_.columns - column,
                                              i64{8} * eights_)); // from there on
    const int first_row = down() * 32 + lane() / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Out *const row = to + (first_row + i * 8) * ld + column;
      const bool there = i64{at_.tile} * dense_rows + first_row + i * 8 < job_.rows;
#pragma unroll
      for (int j = 0; j < warp_eights; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (there && j < eights_ && j * 8 + e < columns)
            row[j * 8 + e] =
                static_cast<Out>(grows ? static_cast<double>(row[j * 8 + e]) + sums[i][j][e] : sums[i][j][e]);
    }
  }

  /// Rows go from shared memory to the block's sums: each is one thread's, in the order of rows. Neighbouring rows that
  /// belong to one row of the result make a run; after `count` runs it is the first one's turn again.
  __device__ void add_rows(i64 row, i64 first_slot, double *partial) const {
    const i64 inner = job_.inner;
    const int c = thread_ % Shared::columns;
    const auto there = static_cast<int>(min(i64{32}, job_.rows - row));
    constexpr int groups = threads / Shared::columns;
    constexpr bool some_left = threads % Shared::columns != 0; // who have no column
    if (there <= 0 || c >= job_.columns || (some_left && thread_ >= groups * Shared::columns))
      return;
    const auto upper = static_cast<i64>(quotient(row, inner)); // of the first row
    const auto first_end = static_cast<int>(min((upper + 1) * inner - row, i64{32}));
    const auto length = static_cast<int>(min(inner, i64{32}));
    const auto count = static_cast<int>(min(job_.count, i64{32}));
    const int runs = first_end >= there ? 1 : 1 + (there - first_end + length - 1) / length;
    i64 slot = upper - first_slot + thread_ / Shared::columns;
    if (slot >= job_.slots)
      slot = remainder(slot, job_.count);
    double *to = partial + slot * job_.columns + c;
    const auto next = [&] {
      slot += groups;
      to += groups * job_.columns;
      if (slot >= job_.slots) {
        slot = remainder(slot, job_.count);
        to = partial + slot * job_.columns + c;
      }
    };
    if (inner == 1 && count == 32) { // each row is a run
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

  __device__ void stage_rows(const Sums<double, warp_eights> &sums) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < warp_eights; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (j < eights_)
            shared_.rows[i * 8 + lane() / 4][first_column() + j * 8 + lane() % 4 * 2 + e] = sums[i][j][e];
  }

  /// Times the rows of the row side's other modes and the scales of products.
  __device__ void multiply_rows(Sums<double, warp_eights> &sums) const {
    const i64 column = i64{blockIdx.x % job_.column_tiles} * job_.columns + first_column() + lane() % 4 * 2;
    const i64 end = min(job_.rank, column - lane() % 4 * 2 + i64{8} * eights_);
    if constexpr (How == Multiply::tf32_pairs)
#pragma unroll
      for (int j = 0; j < warp_eights; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const double scale = column + j * 8 + e < end ? job_.scales[column + j * 8 + e] : 0.0;
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
        for (int j = 0; j < warp_eights; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (mode.data != nullptr && column + j * 8 + e < end)
              sums[i][j][e] *= static_cast<double>(from[column + j * 8 + e]);
      }
    }
  }

  const Job<T> &job_;
  Shared &shared_;
  Cursor<T> at_;
  int thread_;
  int shift_;      // where the thread's first elements are, behind where rows begin
  int turn_;       // Elements::turn
  int before_ = 0; // the stage before this one
  int column_;
  int eights_; // of columns that the tile has for this warp; none if it is not positive
  Sums<std::conditional_t<How == Multiply::tf32_pairs, float, double>, warp_eights> sums_ = {};
  int chunks_ = 0; // that they are of
};

template <class T, Multiply How, bool Leading, int Width, int Count, bool Lines>
__global__ void __launch_bounds__(producers + 128 * dense_across(Width), dense_together(Width))
    multiply_fused(const __grid_constant__ Job<T> job) {
  extern __shared__ __align__(32) unsigned char memory[];
  using Shared = Stages<T, How, Leading, Width, Count, Lines>;
  static_assert(sizeof(Shared) == dense_shared_bytes(Leading, sizeof(T), How, Width, Count));
  // A word that is not made anew for each access, as the compiler makes the beginning of shared memory.
  u32 at;
  asm volatile("mov.u32 %0, %1;" : "=r"(at) : "r"(static_cast<u32>(__cvta_generic_to_shared(memory))));
  auto &shared = *static_cast<Shared *>(__cvta_shared_to_generic(at));
  if (threadIdx.x < Shared::count) {
    shared.full[threadIdx.x].start(producers);
    shared.empty[threadIdx.x].start(4 * Shared::across * arrivals_of_warp);
  }
  await_kernel_before();
  let_next_start();
  __syncthreads();
  if (threadIdx.x < producers)
    Producer<T, How, Leading, Width, Count, Lines>(job, shared).run();
  else
    Consumer<T, How, Leading, Width, Count, Lines>(job, shared).run();
}

template <class T, Multiply How, bool Leading, int Width, int Count, bool Lines>
void launch(Gpu &device, const Job<T> &job) {
  using Shared = Stages<T, How, Leading, Width, Count, Lines>;
  const auto kernel = multiply_fused<T, How, Leading, Width, Count, Lines>;
  allow_shared(kernel, sizeof(Shared));
  launch_early(device, kernel, static_cast<unsigned>(job.blocks * job.column_tiles), producers + 128 * Shared::across,
               sizeof(Shared), job);
}

template <class T, Multiply How, bool Leading, int Width, bool Lines>
void launch_stages(Gpu &device, const Job<T> &job, int stages) {
  constexpr int most = dense_stages(Width, How, sizeof(T));
  stages < most ? launch<T, How, Leading, Width, dense_least_stages, Lines>(device, job)
                : launch<T, How, Leading, Width, most, Lines>(device, job);
}

template <class T, Multiply How, bool Leading, int Width>
void launch_width(Gpu &device, const Job<T> &job, int stages) {
  if constexpr (dense_in_lines(Leading, Width, How, sizeof(T)))
    if (job.copies == Copies::lines)
      return launch_stages<T, How, Leading, Width, true>(device, job, stages);
  launch_stages<T, How, Leading, Width, false>(device, job, stages);
}

template <class T, Multiply How, bool Leading> void launch(Gpu &device, const Job<T> &job, int stages) {
  const auto width = [](i64 columns) constexpr { return dense_width(Leading, columns, How, sizeof(T)); };
  if constexpr (width(1) == 16)
    if (width(job.columns) == 16)
      return launch_width<T, How, Leading, 16>(device, job, stages);
  switch (width(job.columns)) {
  case 32:
    return launch_width<T, How, Leading, 32>(device, job, stages);
  case 64:
    return launch_width<T, How, Leading, 64>(device, job, stages);
  case 96:
    return launch_width<T, How, Leading, 96>(device, job, stages);
  default:
    if constexpr (width(120) == 120)
      return launch_width<T, How, Leading, 120>(device, job, stages);
  }
}

template <class T, Multiply How> void launch(Gpu &device, const Job<T> &job, const DenseLayout &layout) {
  layout.leading ? launch<T, How, true>(device, job, layout.stages) : launch<T, How, false>(device, job, layout.stages);
}

template <class T> void start(Gpu &device, const Job<T> &job, const DenseLayout &layout) {
  if constexpr (std::is_same_v<T, float>)
    if (layout.multiply == Multiply::tf32_pairs)
      return launch<T, Multiply::tf32_pairs>(device, job, layout);
  launch<T, Multiply::f64>(device, job, layout);
}

} // namespace td::kernels::cuda::fused
