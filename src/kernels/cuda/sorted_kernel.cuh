// MTTKRP over a sorted copy. Blocks of threads take equal ranges of the entries, and within a tile their groups of
// lanes equal parts of those; a group sums the pieces of rows that lie in its part in registers. A piece that groups or
// blocks share is summed in the order of the entries: within a block through shared memory, between blocks through a
// list of what they carry out of their ranges, which another kernel adds up. So no sum depends on chance, and a row
// that holds most of the tensor costs no more than others.
//
// The rows of other factors that all entries of a tile refer to may be copied to shared memory (a window): a row from
// there costs about a third of one from the second-level cache, which is the bound otherwise.
#pragma once

#include "kernels/cuda/lanes.cuh"
#include "kernels/kernels.hpp"

namespace td::kernels::cuda {

/// What becomes of a piece's sum.
enum class Finish {
  write, // it is the row: pieces are whole rows
  add,   // it is added to the row, in any order
  keep   // it goes to `slots`, to be added up in the order of tiles
};

struct SortedJob {
  const void *keys;
  const void *values;
  bool f32_values; // where rows are f32 and sums f64; else values have the type of both
  Range entries;   // to work on; pieces end where it ends
  const i64 *row_index;
  const i64 *row_begin;
  i64 pieces;
  i64 tiles;
  const i64 *tile_begin;
  const i64 *tile_base;
  int order;
  int factors;
  FactorRows factor[most_factors]; // those without a window first, as their rows come from farther
  const int *exponents;            // by column of the result: it is multiplied by 2 to that; null for none
  void *out;
  i64 out_ld;
  bool out_aligned; // rows may be written 16 bytes at a time
  Range rows;       // of the result, others are not touched
  bool all_rows;
  int first_col;
  int cols;  // of this pass
  u32 pitch; // bytes of a window's row
  Finish finish;
  double *carry;    // [2 * blocks][cols] what blocks carry out: of the piece that began before, of the one that goes on
  i64 *carry_piece; // [2 * blocks] of which piece, -1 for none
  double *slots;    // [pieces][cols]
};

/// A sum of products with rows that were scaled, as it is without.
__device__ inline double unscaled(const SortedJob &job, int col, double sum) {
  return job.exponents == nullptr ? sum : scalbn(sum, job.exponents[job.first_col + col]);
}

/// Row: of the factors' rows. Term: of terms, sums and the result. Factors: how many other modes there are, 0 for any
/// number. Ahead: entries whose rows are asked for at once.
template <class Row, class Term, class Key, int Factors, int Lanes, int Size, int Threads, int Ahead>
__global__ void __launch_bounds__(Threads, 1) walk_sorted(const __grid_constant__ SortedJob job) {
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr int groups = Threads / Lanes;
  constexpr int fixed = Factors > 0 ? Factors : 1;
  __shared__ int fragment_piece[2 * groups];
  auto *const fragments = reinterpret_cast<double *>(shared); // [2 * groups][cols]; windows stand behind
  constexpr bool mixed = sizeof(Row) != sizeof(Term);
  using V = Vector<Row, Size>;

  const int lane = static_cast<int>(threadIdx.x) % Lanes;
  const int group = static_cast<int>(threadIdx.x) / Lanes;
  const LaneColumns<Row, Lanes, Size> columns(job.cols);
  const u32 my_bytes = columns.bytes();
  const i64 first_bytes = static_cast<i64>(job.first_col) * static_cast<i64>(sizeof(Row));
  const int factors = Factors > 0 ? Factors : job.factors;

  if (threadIdx.x < 2)
    job.carry_piece[2 * blockIdx.x + threadIdx.x] = -1;
  Range entries = job.entries;
  if (!job.all_rows && job.tiles == 1) {
    const auto first_not_below = [&](i64 row) {
      return last_where<Lanes>(0, job.pieces + 1, [&](i64 p) { return p == 0 || job.row_index[p - 1] < row; });
    };
    entries.begin = max(entries.begin, job.row_begin[first_not_below(job.rows.begin)]);
    entries.end = min(entries.end, job.row_begin[first_not_below(job.rows.end)]);
  }
  const i64 each = ((entries.end - entries.begin + gridDim.x - 1) / gridDim.x + Ahead - 1) / Ahead * Ahead;
  const i64 begin = min(entries.end, entries.begin + each * blockIdx.x);
  const i64 end = min(entries.end, begin + each);
  if (begin >= end)
    return;

  const auto finish_piece = [&](i64 piece, i64 row, const double(&sum)[Size]) {
    if (job.finish == Finish::keep) {
      columns.keep(job.slots + piece * job.cols, sum);
      return;
    }
    if (!job.all_rows && (row < job.rows.begin || row >= job.rows.end))
      return;
    Term *to = static_cast<Term *>(job.out) + row * job.out_ld + job.first_col;
    double result[Size];
#pragma unroll
    for (int c = 0; c < Size; ++c)
      result[c] = mixed && columns.at + c < job.cols ? unscaled(job, columns.at + c, sum[c]) : sum[c];
    if (job.finish == Finish::add)
      columns.add(to, result);
    else
      columns.put(to, result, !mixed || job.out_aligned);
  };
  const auto keep_fragment = [&](int which, int piece, const double(&sum)[Size]) {
    if (lane == 0)
      fragment_piece[2 * group + which] = piece;
    columns.keep(fragments + (2 * group + which) * job.cols, sum);
  };

  i64 tile = 0;
  if (job.tiles > 1)
    tile = last_where<Lanes>(0, job.tiles, [&](i64 t) { return job.row_begin[job.tile_begin[t]] <= begin; });
  i64 first_piece = job.tiles > 1 ? job.tile_begin[tile] : 0;
  first_piece = last_where<Lanes>(first_piece, job.tiles > 1 ? job.tile_begin[tile + 1] : job.pieces,
                                  [&](i64 p) { return job.row_begin[p] <= begin; });
  for (i64 at = begin; at < end;) {
    const i64 tile_pieces = job.tiles > 1 ? job.tile_begin[tile + 1] : job.pieces;
    const i64 tile_end = job.row_begin[tile_pieces];
    if (tile_end <= at) { // it has no entries
      ++tile;
      first_piece = tile_pieces;
      continue;
    }
    const i64 stop = min(tile_end, end);

    const unsigned char *rows_of[fixed];
#pragma unroll
    for (int m = 0; m < factors; ++m) {
      const FactorRows &f = job.factor[m];
      const i64 base = job.tiles > 1 ? job.tile_base[tile * job.order + f.mode] : 0;
      const unsigned char *from = f.rows + base * f.stride + first_bytes + my_bytes;
      if (Factors > 0)
        rows_of[Factors > 0 ? m : 0] = from;
      if (f.window == 0 || !columns.any())
        continue;
      unsigned char *to = shared + f.window_at + my_bytes;
      const int count = static_cast<int>(min(i64{f.window}, f.dim - base));
#pragma unroll 1
      for (int r = group; r < count; r += groups) {
        if constexpr (sizeof(V) == 16)
          copy_async(to + r * job.pitch, from + i64{r} * f.stride);
        else
          *reinterpret_cast<V *>(to + r * job.pitch) = *reinterpret_cast<const V *>(from + i64{r} * f.stride);
      }
    }

    // Entries are counted from `zero`, which is aligned, and pieces from first_piece.
    const i64 zero = at / Ahead * Ahead;
    const int first = static_cast<int>(at - zero);
    const int last = static_cast<int>(stop - zero);
    const int part = ((last + groups - 1) / groups + Ahead - 1) / Ahead * Ahead;
    const int lo = max(first, group * part);
    const int hi = min(last, (group + 1) * part);
    const Key *const keys = static_cast<const Key *>(job.keys) + zero;
    const auto begin_of = [&](int p) { // what lies far beyond this range is only known to do so
      const i64 from = job.row_begin[min(first_piece + p, job.pieces)] - zero;
      return from > 0x7fffffff ? 0x7fffffff : static_cast<int>(from);
    };

    Key key[Ahead];
    Term value[Ahead];
    const auto load_some = [&](int q, const auto *from, auto(&to)[Ahead]) {
      using From = std::decay_t<decltype(*from)>;
      using To = std::decay_t<decltype(*to)>;
      constexpr int each = std::min<int>(Ahead, 16 / sizeof(From));
      if (q >= lo && q + Ahead <= hi) {
#pragma unroll
        for (int j = 0; j < Ahead; j += each) {
          const auto some = *reinterpret_cast<const Vector<From, each> *>(from + q + j);
#pragma unroll
          for (int i = 0; i < each; ++i)
            to[j + i] = static_cast<To>(some.v[i]);
        }
      } else {
#pragma unroll
        for (int j = 0; j < Ahead; ++j)
          to[j] = q + j >= lo && q + j < hi ? static_cast<To>(from[q + j]) : To{0};
      }
    };
    const auto load = [&](int q) {
      load_some(q, keys, key);
      if (mixed && job.f32_values)
        load_some(q, static_cast<const float *>(job.values) + zero, value);
      else
        load_some(q, static_cast<const Term *>(job.values) + zero, value);
    };

    if (lane < 2)
      fragment_piece[2 * group + lane] = -1;
    __syncwarp();
    double sum[Size];
    Term low[Size]; // of the last 128 entries or so, where that is float
#pragma unroll
    for (int c = 0; c < Size; ++c) {
      sum[c] = 0;
      low[c] = 0;
    }
    const auto fold = [&] {
      if constexpr (sizeof(Term) == 4) {
#pragma unroll
        for (int c = 0; c < Size; ++c) {
          sum[c] += static_cast<double>(low[c]);
          low[c] = 0;
        }
      }
    };
    int piece = 0;
    int next = 0; // where the next piece begins, and the one after it
    int next2 = 0;
    i64 row = 0;
    bool whole = false; // the piece began in this group's part
    int q = lo / Ahead * Ahead;
    if (lo < hi) {
      load(q);
      piece = static_cast<int>(
          last_where<Lanes>(first_piece, tile_pieces, [&](i64 p) { return job.row_begin[p] <= zero + lo; }) -
          first_piece);
      // A piece that the range of entries cuts begins with it.
      whole = job.row_begin[first_piece + piece] == zero + lo || zero + lo == entries.begin;
      next = begin_of(piece + 1);
      next2 = begin_of(piece + 2);
      row = job.row_index[first_piece + piece];
    }
    await_copies();
    __syncthreads();

    for (int folded = 0; q < hi; q += Ahead) {
      Key now[Ahead];
      Term term[Ahead][Size];
      V factor[Ahead]; // the last one, which the addition multiplies by
#pragma unroll
      for (int j = 0; j < Ahead; ++j) {
        now[j] = key[j];
#pragma unroll
        for (int c = 0; c < Size; ++c)
          term[j][c] = value[j];
      }
      if (q + Ahead < hi)
        load(q + Ahead);
      if constexpr (Factors > 0) {
        V rows[fixed][Ahead]; // all are asked for before the first is needed
#pragma unroll
        for (int m = 0; m < Factors; ++m) {
          const FactorRows &f = job.factor[m];
          if (f.window > 0) {
            const unsigned char *window = shared + (f.window_at + my_bytes);
#pragma unroll
            for (int j = 0; j < Ahead; ++j)
              rows[m][j] = *reinterpret_cast<const V *>(window + field_of(now[j], f) * job.pitch);
          } else {
#pragma unroll
            for (int j = 0; j < Ahead; ++j)
              rows[m][j] = *reinterpret_cast<const V *>(rows_of[m] + u64{field_of(now[j], f)} * f.stride);
          }
        }
#pragma unroll
        for (int m = 0; m < Factors - 1; ++m)
#pragma unroll
          for (int j = 0; j < Ahead; ++j)
#pragma unroll
            for (int c = 0; c < Size; ++c)
              term[j][c] *= static_cast<Term>(rows[m][j].v[c]);
#pragma unroll
        for (int j = 0; j < Ahead; ++j)
          factor[j] = rows[fixed - 1][j];
      } else {
        for (int m = 0; m < factors; ++m) {
          const FactorRows &f = job.factor[m];
          const i64 base = job.tiles > 1 ? job.tile_base[tile * job.order + f.mode] : 0;
#pragma unroll
          for (int j = 0; j < Ahead; ++j) {
            const i64 i = wide_field_of(now[j], f);
            if (m > 0)
#pragma unroll
              for (int c = 0; c < Size; ++c)
                term[j][c] *= static_cast<Term>(factor[j].v[c]);
            factor[j] = f.window > 0
                            ? *reinterpret_cast<const V *>(shared + f.window_at + my_bytes + i * job.pitch)
                            : *reinterpret_cast<const V *>(f.rows + (base + i) * f.stride + first_bytes + my_bytes);
          }
        }
        if (factors == 0)
#pragma unroll
          for (int j = 0; j < Ahead; ++j)
#pragma unroll
            for (int c = 0; c < Size; ++c)
              factor[j].v[c] = 1;
      }
      const auto add_term = [&](int j) {
#pragma unroll
        for (int c = 0; c < Size; ++c) {
          if constexpr (sizeof(Term) == 4)
            low[c] = fmaf(term[j][c], factor[j].v[c], low[c]);
          else
            sum[c] = fma(term[j][c], static_cast<Term>(factor[j].v[c]), sum[c]);
        }
      };
      if (q >= lo && q + Ahead <= min(next, hi)) {
#pragma unroll
        for (int j = 0; j < Ahead; ++j)
          add_term(j);
      } else {
        int j0 = max(lo - q, 0);
        const int j_end = min(hi - q, Ahead);
        while (true) {
          const int j1 = min(next - q, j_end);
#pragma unroll
          for (int j = 0; j < Ahead; ++j)
            if (j >= j0 && j < j1)
              add_term(j);
          if (j1 == j_end)
            break;
          fold();
          if (whole)
            finish_piece(first_piece + piece, row, sum);
          else
            keep_fragment(0, piece, sum);
          j0 = j1;
          ++piece;
          whole = true;
          next = next2;
          next2 = begin_of(piece + 2);
          row = job.row_index[first_piece + piece];
#pragma unroll
          for (int c = 0; c < Size; ++c)
            sum[c] = 0;
        }
      }
      if (sizeof(Term) == 4 && (++folded & (128 / Ahead - 1)) == 0)
        fold();
    }
    if (lo < hi) {
      fold();
      if (whole && (next == hi || zero + hi == entries.end))
        finish_piece(first_piece + piece, row, sum);
      else
        keep_fragment(1, piece, sum); // also where the group's whole part lies in one piece
    }

    __syncthreads();
#pragma unroll 1
    for (int s = 2 * group; s < 2 * group + 2; ++s) {
      const int here = fragment_piece[s];
      if (here < 0)
        continue;
      int before = s - 1;
      while (before >= 0 && fragment_piece[before] < 0)
        --before;
      if (before >= 0 && fragment_piece[before] == here)
        continue; // the group with its first fragment does it
#pragma unroll
      for (int c = 0; c < Size; ++c)
        sum[c] = 0;
#pragma unroll 1
      for (int other = s; other < 2 * groups; ++other) {
        if (fragment_piece[other] < 0)
          continue;
        if (fragment_piece[other] != here)
          break;
#pragma unroll
        for (int c = 0; c < Size; ++c)
          if (columns.at + c < job.cols)
            sum[c] += fragments[other * job.cols + columns.at + c];
      }
      const i64 id = first_piece + here;
      const i64 piece_begin = max(job.row_begin[id], entries.begin);
      const i64 piece_end = min(job.row_begin[id + 1], entries.end);
      if (job.finish == Finish::add || (piece_begin >= begin && piece_end <= end)) {
        finish_piece(id, job.row_index[id], sum);
      } else {
        const i64 slot = 2 * i64{blockIdx.x} + (piece_begin < begin ? 0 : 1);
        if (lane == 0)
          job.carry_piece[slot] = id;
        columns.keep(job.carry + slot * job.cols, sum);
      }
    }
    __syncthreads(); // before the next tile's windows and fragments
    at = stop;
    ++tile;
    first_piece = tile_pieces;
  }
}

} // namespace td::kernels::cuda
