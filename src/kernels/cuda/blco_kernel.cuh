// MTTKRP over a BLCO copy as Nguyen et al. (Efficient, out-of-memory sparse MTTKRP on massively parallel architectures,
// ICS 2022) do it. A block of threads takes a tile of neighbouring entries. Processing: it loads them coalesced, takes
// the target mode's index out of the keys by shift and mask, and sorts the tile by it; neighbours in the interleaved
// order are near in every mode, so a tile has few targets and few bits tell them apart. Computing: groups of lanes walk
// equal parts of the tile, sum entries with equal targets in registers and add each such segment to the result at once.
// Where the target mode is so short that all tiles add to the same rows, there are several copies of the result, merged
// at the end.
//
// Blocks of BLCO may begin and end within a tile, so many short ones are one launch.
#pragma once

#include <cub/block/block_radix_sort.cuh>

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/sizes.hpp"

namespace td::kernels::cuda {

struct BlcoJob {
  const u64 *keys;
  const void *values;
  Range entries;
  i64 blocks;
  const i64 *block_begin;
  const i64 *block_base;
  int order;
  int factors;
  FactorRows factor[most_factors];
  FactorRows target; // rows and stride are not used
  void *out;
  i64 out_ld;
  Range rows;
  int first_col;
  int cols;
  int copies;
  i64 copy_size; // values from one copy of the result to the next
};

using BlcoSort = cub::BlockRadixSort<u32, blco_threads, blco_each, std::uint16_t>;

template <class Term> struct BlcoTile {
  u64 key[blco_tile];
  Term value[blco_tile];
  std::uint16_t block[blco_tile]; // counted from the tile's first one, where it has more than one
  typename BlcoSort::TempStorage sort;
};

/// What a block's threads know of their tile, and the stages of walk_blco. All are inlined, so that members and arrays
/// are registers. T: of values and factors. Term: of terms, sums and the result. Factors: how many other modes there
/// are, 0 for any number.
template <class T, class Term, int Factors, int Lanes, int Size> struct BlcoWalk {
  static constexpr int groups = blco_threads / Lanes;
  static constexpr int part = blco_tile / groups;
  static constexpr int fixed = Factors > 0 ? Factors : 1;
  static constexpr int ahead = 4;
  using V = Vector<T, Size>;

  const BlcoJob &job;
  BlcoTile<Term> &tile;
  const int group;
  const LaneColumns<T, Lanes, Size> columns;
  const i64 lane_bytes;
  const i64 begin;
  const int count;
  const i64 block0; // of BLCO, in which the tile begins
  const bool one_block;
  const i64 *const base0;
  const u32 target_base;

  __device__ __forceinline__ BlcoWalk(const BlcoJob &j, BlcoTile<Term> &t)
      : job(j), tile(t), group(static_cast<int>(threadIdx.x) / Lanes), columns(j.cols),
        lane_bytes(static_cast<i64>(j.first_col) * static_cast<i64>(sizeof(T)) + columns.bytes()),
        begin(j.entries.begin + i64{blockIdx.x} * blco_tile),
        count(static_cast<int>(min(i64{blco_tile}, j.entries.end - begin))),
        block0(last_where<Lanes>(0, j.blocks, [&](i64 b) { return j.block_begin[b] <= begin; })),
        one_block(j.block_begin[block0 + 1] >= begin + count), base0(j.block_base + block0 * j.order),
        target_base(static_cast<u32>(base0[j.target.mode])) {}

  __device__ __forceinline__ i64 base_of(int k, int mode) const {
    return one_block ? base0[mode] : base0[i64{tile.block[k]} * job.order + mode];
  }
  /// Targets are told apart by their low 32 bits: a factor of more rows would not fit.
  __device__ __forceinline__ u32 target_of(int k, u64 key) const {
    const u32 base = one_block ? target_base : static_cast<u32>(base_of(k, job.target.mode));
    return base + field_of(key, job.target);
  }

  /// Loads the tile's entries, and finds the block that each belongs to.
  __device__ __forceinline__ void load() const {
    for (int k = static_cast<int>(threadIdx.x); k < count; k += blco_threads) {
      tile.key[k] = job.keys[begin + k];
      tile.value[k] = static_cast<Term>(static_cast<const T *>(job.values)[begin + k]);
      if (!one_block) {
        i64 lo = block0;
        i64 hi = min(job.blocks, block0 + blco_tile); // blocks are not empty
        while (hi - lo > 1) {
          const i64 middle = (lo + hi) / 2;
          (job.block_begin[middle] <= begin + k ? lo : hi) = middle;
        }
        tile.block[k] = static_cast<std::uint16_t>(lo - block0);
      }
    }
  }

  /// Sorts the tile by target. `any` and `all` are in shared memory: bits that some target has, and that all have.
  __device__ __forceinline__ void sort(u32 &any, u32 &all) const {
    u32 target[blco_each];
    std::uint16_t from[blco_each];
    u32 mine_any = 0;
    u32 mine_all = ~0u;
#pragma unroll
    for (int i = 0; i < blco_each; ++i) {
      const int k = static_cast<int>(threadIdx.x) * blco_each + i;
      from[i] = static_cast<std::uint16_t>(k < count ? k : 0);
      target[i] = ~0u; // what is no entry stays last, as the sort is stable
      if (k < count) {
        target[i] = target_of(k, tile.key[k]);
        mine_any |= target[i];
        mine_all &= target[i];
      }
    }
    atomicOr(&any, __reduce_or_sync(0xffffffffu, mine_any));
    atomicAnd(&all, __reduce_and_sync(0xffffffffu, mine_all));
    __syncthreads();
    if (const u32 differ = any & ~all; differ != 0)
      BlcoSort(tile.sort).Sort(target, from, 0, 32 - __clz(static_cast<int>(differ)));
    u64 key[blco_each];
    Term value[blco_each];
    std::uint16_t block[blco_each];
#pragma unroll
    for (int i = 0; i < blco_each; ++i) {
      key[i] = tile.key[from[i]];
      value[i] = tile.value[from[i]];
      block[i] = one_block ? 0 : tile.block[from[i]];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < blco_each; ++i) {
      const int k = static_cast<int>(threadIdx.x) * blco_each + i;
      tile.key[k] = key[i];
      tile.value[k] = value[i];
      tile.block[k] = block[i];
    }
  }

  /// Reads entries from number q on; beyond the part's end, hi, its last one, which is not added again.
  __device__ __forceinline__ void read(int q, int hi, int (&at)[ahead], u64 (&key)[ahead], Term (&term)[ahead][Size],
                                       V (&factor)[ahead]) const {
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      at[j] = min(q + j, hi - 1);
      key[j] = tile.key[at[j]];
      const Term x = tile.value[at[j]];
#pragma unroll
      for (int c = 0; c < Size; ++c) {
        term[j][c] = x;
        factor[j].v[c] = 1;
      }
    }
  }

  /// Multiplies values by the rows of all other modes but the last, whose rows come besides.
  __device__ __forceinline__ void multiply_all_at_once(const unsigned char *const (&rows_of)[fixed],
                                                       const u64 (&key)[ahead], Term (&term)[ahead][Size],
                                                       V (&factor)[ahead]) const {
    V rows[fixed][ahead]; // all are asked for before the first is needed
#pragma unroll
    for (int m = 0; m < Factors; ++m)
#pragma unroll
      for (int j = 0; j < ahead; ++j)
        rows[m][j] =
            *reinterpret_cast<const V *>(rows_of[m] + u64{field_of(key[j], job.factor[m])} * job.factor[m].stride);
#pragma unroll
    for (int m = 0; m < Factors - 1; ++m)
#pragma unroll
      for (int j = 0; j < ahead; ++j)
#pragma unroll
        for (int c = 0; c < Size; ++c)
          term[j][c] *= static_cast<Term>(rows[m][j].v[c]);
#pragma unroll
    for (int j = 0; j < ahead; ++j)
      factor[j] = rows[fixed - 1][j];
  }

  __device__ __forceinline__ void multiply_mode_by_mode(const int (&at)[ahead], const u64 (&key)[ahead],
                                                        Term (&term)[ahead][Size], V (&factor)[ahead]) const {
    for (int m = 0; m < job.factors; ++m) {
      const FactorRows &f = job.factor[m];
#pragma unroll
      for (int j = 0; j < ahead; ++j) {
        if (m > 0)
#pragma unroll
          for (int c = 0; c < Size; ++c)
            term[j][c] *= static_cast<Term>(factor[j].v[c]);
        const i64 i = base_of(at[j], f.mode) + wide_field_of(key[j], f);
        factor[j] = *reinterpret_cast<const V *>(f.rows + i * f.stride + lane_bytes);
      }
    }
  }

  /// Adds a segment to its row, and begins the next.
  __device__ __forceinline__ void flush(Term *out, u32 row, Term (&sum)[Size]) const {
    double wide[Size];
#pragma unroll
    for (int c = 0; c < Size; ++c) {
      wide[c] = static_cast<double>(sum[c]);
      sum[c] = 0;
    }
    if (row >= job.rows.begin && row < job.rows.end)
      columns.add(out + i64{row} * job.out_ld, wide);
  }
};

template <class T, class Term, int Factors, int Lanes, int Size>
__global__ void __launch_bounds__(blco_threads, Factors == 3 || sizeof(T) != sizeof(Term) ? 2 : 3)
    walk_blco(const __grid_constant__ BlcoJob job) {
  using Walk = BlcoWalk<T, Term, Factors, Lanes, Size>;
  constexpr int ahead = Walk::ahead;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ u32 any, all;
  auto &tile = *reinterpret_cast<BlcoTile<Term> *>(shared);
  const Walk walk(job, tile);
  if (threadIdx.x == 0) {
    any = 0;
    all = ~0u;
  }
  walk.load();
  __syncthreads();
  walk.sort(any, all);
  __syncthreads();

  // The loop stands here: in a function of its own, some instances take other registers, and one spills them.
  const int lo = walk.group * Walk::part;
  const int hi = min(walk.count, lo + Walk::part);
  if (lo >= hi)
    return;
  Term *const out = static_cast<Term *>(job.out) + i64{blockIdx.x} % job.copies * job.copy_size + job.first_col;
  const unsigned char *rows_of[Walk::fixed];
#pragma unroll
  for (int m = 0; m < Factors; ++m)
    rows_of[m] = job.factor[m].rows + walk.base0[job.factor[m].mode] * job.factor[m].stride + walk.lane_bytes;
  u32 current = walk.target_of(lo, tile.key[lo]);
  Term sum[Size]; // of a segment, which is short
#pragma unroll
  for (int c = 0; c < Size; ++c)
    sum[c] = 0;
  for (int q = lo; q < hi; q += ahead) {
    int at[ahead];
    u64 key[ahead];
    Term term[ahead][Size];
    typename Walk::V factor[ahead]; // the last one, which the addition multiplies by
    walk.read(q, hi, at, key, term, factor);
    if (Factors > 0 && walk.one_block)
      walk.multiply_all_at_once(rows_of, key, term, factor);
    else
      walk.multiply_mode_by_mode(at, key, term, factor);
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      if (q + j >= hi)
        break;
      const u32 row = walk.target_of(at[j], key[j]);
      if (row != current) {
        walk.flush(out, current, sum);
        current = row;
      }
#pragma unroll
      for (int c = 0; c < Size; ++c)
        sum[c] = fma(term[j][c], static_cast<Term>(factor[j].v[c]), sum[c]);
    }
  }
  walk.flush(out, current, sum);
}

} // namespace td::kernels::cuda
