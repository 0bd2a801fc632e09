// MTTKRP over a sorted copy. Blocks of threads take equal ranges of the entries, and within a tile their groups of
// lanes equal parts of those; a group sums the segments of rows that lie in its part in registers. A segment that
// groups or blocks share is summed in the order of the entries: within a block through shared memory, between blocks
// through a list of what they carry out of their ranges, which another kernel adds up. So no sum depends on chance, and
// a row that holds most of the tensor costs no more than others.
//
// The rows of other factors that a tile refers to may be staged in shared memory: a row from there costs about a third
// of one from the second-level cache, which is the bound otherwise.
#pragma once

#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/sorted_walk.hpp"

namespace td::kernels::cuda {

/// The walk of a block. Row: of the factors' rows. Term: of terms, sums and the result. Factors: how many other modes
/// there are, 0 for any number. Ahead: entries whose rows are asked for at once. What run() calls are its stages; all
/// of them are inlined, so that members are registers.
template <class Row, class Term, class Key, int Factors, int Lanes, int Size, int Threads, int Ahead> class SortedWalk {
public:
  static constexpr int groups = Threads / Lanes;

  __device__ __forceinline__ SortedWalk(const SortedJob &job, unsigned char *shared, int *group_segment)
      : job_(job), shared_(shared), group_sums_(reinterpret_cast<double *>(shared)), group_segment_(group_segment),
        lane_(static_cast<int>(threadIdx.x) % Lanes), group_(static_cast<int>(threadIdx.x) / Lanes), columns_(job.cols),
        my_bytes_(columns_.bytes()), first_bytes_(static_cast<i64>(job.first_col) * static_cast<i64>(sizeof(Row))),
        factors_(Factors > 0 ? Factors : job.factors) {}

  __device__ __forceinline__ void run() {
    if (threadIdx.x < 2)
      job_.carry_segment[2 * blockIdx.x + threadIdx.x] = -1;
    take_range();
    if (begin_ >= end_)
      return;
    find_tile();
    for (i64 at = begin_; at < end_;) {
      tile_segments_ = job_.tiles > 1 ? job_.tile_begin[tile_ + 1] : job_.segments;
      const i64 tile_end = job_.row_begin[tile_segments_];
      if (tile_end <= at) { // it has no entries
        ++tile_;
        first_segment_ = tile_segments_;
        continue;
      }
      const i64 stop = min(tile_end, end_);
      Starts rows_of;
      stage_rows(rows_of);
      take_part(at, stop);
      Keys key;
      Values value;
      Sum sum;
      Low low;
      begin_part(key, value, sum, low);
      await_copies();
      __syncthreads();
      for (int folded = 0; q_ < hi_; q_ += Ahead) {
        Terms term;
        Vectors factor; // the last one, which the addition multiplies by
        multiply_rows(rows_of, key, value, term, factor);
        add_terms(term, factor, sum, low);
        if (sizeof(Term) == 4 && (++folded & (128 / Ahead - 1)) == 0)
          fold(sum, low);
      }
      end_part(sum, low);
      __syncthreads();
      join_groups(sum);
      __syncthreads(); // before the next tile's staged rows and sums
      at = stop;
      ++tile_;
      first_segment_ = tile_segments_;
    }
  }

private:
  static constexpr int fixed = Factors > 0 ? Factors : 1;
  static constexpr bool mixed = sizeof(Row) != sizeof(Term);
  // Arrays are handed on instead of being members, or they would not be registers.
  using V = Vector<Row, Size>;
  using Vectors = V[Ahead];
  using Keys = Key[Ahead];
  using Values = Term[Ahead];
  using Terms = Term[Ahead][Size];
  using Sum = double[Size];
  using Low = Term[Size]; // of the last 128 entries or so, where that is float
  using Starts = const unsigned char *[fixed];

  /// Each block takes an equal range of the entries.
  __device__ __forceinline__ void take_range() {
    entries_ = job_.entries;
    if (!job_.all_rows && job_.tiles == 1) {
      const auto first_not_below = [&](i64 row) {
        return last_where<Lanes>(0, job_.segments + 1, [&](i64 p) { return p == 0 || job_.row_index[p - 1] < row; });
      };
      entries_.begin = max(entries_.begin, job_.row_begin[first_not_below(job_.rows.begin)]);
      entries_.end = min(entries_.end, job_.row_begin[first_not_below(job_.rows.end)]);
    }
    const i64 each = ((entries_.end - entries_.begin + gridDim.x - 1) / gridDim.x + Ahead - 1) / Ahead * Ahead;
    begin_ = min(entries_.end, entries_.begin + each * blockIdx.x);
    end_ = min(entries_.end, begin_ + each);
  }

  /// Finds the tile and the segment in which the block's range begins.
  __device__ __forceinline__ void find_tile() {
    tile_ = 0;
    if (job_.tiles > 1)
      tile_ = last_where<Lanes>(0, job_.tiles, [&](i64 t) { return job_.row_begin[job_.tile_begin[t]] <= begin_; });
    first_segment_ = job_.tiles > 1 ? job_.tile_begin[tile_] : 0;
    first_segment_ = last_where<Lanes>(first_segment_, job_.tiles > 1 ? job_.tile_begin[tile_ + 1] : job_.segments,
                                       [&](i64 p) { return job_.row_begin[p] <= begin_; });
  }

  /// Finds where this lane's columns of each other mode's rows begin, and stages the rows of some in shared memory.
  __device__ __forceinline__ void stage_rows(Starts &rows_of) const {
#pragma unroll
    for (int m = 0; m < factors_; ++m) {
      const FactorRows &f = job_.factor[m];
      const i64 base = job_.tiles > 1 ? job_.tile_base[tile_ * job_.order + f.mode] : 0;
      const unsigned char *from = f.rows + base * f.stride + first_bytes_ + my_bytes_;
      if (Factors > 0)
        rows_of[Factors > 0 ? m : 0] = from;
      if (f.staged == 0 || !columns_.any())
        continue;
      unsigned char *to = shared_ + f.staged_at + my_bytes_;
      const int count = static_cast<int>(min(i64{f.staged}, f.dim - base));
#pragma unroll 1
      for (int r = group_; r < count; r += groups) {
        if constexpr (sizeof(V) == 16)
          copy_async(to + r * job_.pitch, from + i64{r} * f.stride);
        else
          *reinterpret_cast<V *>(to + r * job_.pitch) = *reinterpret_cast<const V *>(from + i64{r} * f.stride);
      }
    }
  }

  /// Each group takes an equal part of what the block has of the tile, entries [at, stop). Entries are counted from
  /// zero_, which is aligned, and segments from first_segment_.
  __device__ __forceinline__ void take_part(i64 at, i64 stop) {
    zero_ = at / Ahead * Ahead;
    const int first = static_cast<int>(at - zero_);
    const int last = static_cast<int>(stop - zero_);
    const int part = ((last + groups - 1) / groups + Ahead - 1) / Ahead * Ahead;
    lo_ = max(first, group_ * part);
    hi_ = min(last, (group_ + 1) * part);
  }

  /// Reads the first entries of the part, and finds the segment that they belong to.
  __device__ __forceinline__ void begin_part(Keys &key, Values &value, Sum &sum, Low &low) {
    if (lane_ < 2)
      group_segment_[2 * group_ + lane_] = -1;
    __syncwarp();
#pragma unroll
    for (int c = 0; c < Size; ++c) {
      sum[c] = 0;
      low[c] = 0;
    }
    segment_ = 0;
    next_ = 0;
    next2_ = 0;
    row_ = 0;
    whole_ = false;
    q_ = lo_ / Ahead * Ahead;
    if (lo_ < hi_) {
      load(q_, key, value);
      segment_ = static_cast<int>(
          last_where<Lanes>(first_segment_, tile_segments_, [&](i64 p) { return job_.row_begin[p] <= zero_ + lo_; }) -
          first_segment_);
      // A segment that the range of entries cuts begins with it.
      whole_ = job_.row_begin[first_segment_ + segment_] == zero_ + lo_ || zero_ + lo_ == entries_.begin;
      next_ = begin_of(segment_ + 1);
      next2_ = begin_of(segment_ + 2);
      row_ = job_.row_index[first_segment_ + segment_];
    }
  }

  /// Multiplies values by the rows of all other modes but the last, whose rows come besides; the next entries are
  /// asked for meanwhile.
  __device__ __forceinline__ void multiply_rows(const Starts &rows_of, Keys &key, Values &value, Terms &term,
                                                Vectors &factor) const {
    Keys now;
#pragma unroll
    for (int j = 0; j < Ahead; ++j) {
      now[j] = key[j];
#pragma unroll
      for (int c = 0; c < Size; ++c)
        term[j][c] = value[j];
    }
    if (q_ + Ahead < hi_)
      load(q_ + Ahead, key, value);
    if constexpr (Factors > 0)
      multiply_all_at_once(rows_of, now, term, factor);
    else
      multiply_mode_by_mode(now, term, factor);
  }

  __device__ __forceinline__ void multiply_all_at_once(const Starts &rows_of, const Keys &now, Terms &term,
                                                       Vectors &factor) const {
    V rows[fixed][Ahead]; // all are asked for before the first is needed
#pragma unroll
    for (int m = 0; m < Factors; ++m) {
      const FactorRows &f = job_.factor[m];
      if (f.staged > 0) {
        const unsigned char *from = shared_ + (f.staged_at + my_bytes_);
#pragma unroll
        for (int j = 0; j < Ahead; ++j)
          rows[m][j] = *reinterpret_cast<const V *>(from + field_of(now[j], f) * job_.pitch);
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
  }

  __device__ __forceinline__ void multiply_mode_by_mode(const Keys &now, Terms &term, Vectors &factor) const {
    for (int m = 0; m < factors_; ++m) {
      const FactorRows &f = job_.factor[m];
      const i64 base = job_.tiles > 1 ? job_.tile_base[tile_ * job_.order + f.mode] : 0;
#pragma unroll
      for (int j = 0; j < Ahead; ++j) {
        const i64 i = wide_field_of(now[j], f);
        if (m > 0)
#pragma unroll
          for (int c = 0; c < Size; ++c)
            term[j][c] *= static_cast<Term>(factor[j].v[c]);
        factor[j] = f.staged > 0
                        ? *reinterpret_cast<const V *>(shared_ + f.staged_at + my_bytes_ + i * job_.pitch)
                        : *reinterpret_cast<const V *>(f.rows + (base + i) * f.stride + first_bytes_ + my_bytes_);
      }
    }
    if (factors_ == 0)
#pragma unroll
      for (int j = 0; j < Ahead; ++j)
#pragma unroll
        for (int c = 0; c < Size; ++c)
          factor[j].v[c] = 1;
  }

  /// Adds to the sum of the segment, and goes on to the next one where it ends.
  __device__ __forceinline__ void add_terms(const Terms &term, const Vectors &factor, Sum &sum, Low &low) {
    const auto add_term = [&](int j) {
#pragma unroll
      for (int c = 0; c < Size; ++c) {
        if constexpr (sizeof(Term) == 4)
          low[c] = fmaf(term[j][c], factor[j].v[c], low[c]);
        else
          sum[c] = fma(term[j][c], static_cast<Term>(factor[j].v[c]), sum[c]);
      }
    };
    if (q_ >= lo_ && q_ + Ahead <= min(next_, hi_)) {
#pragma unroll
      for (int j = 0; j < Ahead; ++j)
        add_term(j);
      return;
    }
    int j0 = max(lo_ - q_, 0);
    const int j_end = min(hi_ - q_, Ahead);
    while (true) {
      const int j1 = min(next_ - q_, j_end);
#pragma unroll
      for (int j = 0; j < Ahead; ++j)
        if (j >= j0 && j < j1)
          add_term(j);
      if (j1 == j_end)
        break;
      fold(sum, low);
      if (whole_)
        finish_segment(first_segment_ + segment_, row_, sum);
      else
        keep_group_sum(0, segment_, sum);
      j0 = j1;
      ++segment_;
      whole_ = true;
      next_ = next2_;
      next2_ = begin_of(segment_ + 2);
      row_ = job_.row_index[first_segment_ + segment_];
#pragma unroll
      for (int c = 0; c < Size; ++c)
        sum[c] = 0;
    }
  }

  /// Ends the part and the sum of its last segment.
  __device__ __forceinline__ void end_part(Sum &sum, Low &low) const {
    if (lo_ >= hi_)
      return;
    fold(sum, low);
    if (whole_ && (next_ == hi_ || zero_ + hi_ == entries_.end))
      finish_segment(first_segment_ + segment_, row_, sum);
    else
      keep_group_sum(1, segment_, sum); // also where the group's whole part lies in one segment
  }

  /// Adds up segments that groups share, in the order of the groups.
  __device__ __forceinline__ void join_groups(Sum &sum) const {
#pragma unroll 1
    for (int s = 2 * group_; s < 2 * group_ + 2; ++s) {
      const int here = group_segment_[s];
      if (here < 0)
        continue;
      int before = s - 1;
      while (before >= 0 && group_segment_[before] < 0)
        --before;
      if (before >= 0 && group_segment_[before] == here)
        continue; // the first group that has a sum of it does it
#pragma unroll
      for (int c = 0; c < Size; ++c)
        sum[c] = 0;
#pragma unroll 1
      for (int other = s; other < 2 * groups; ++other) {
        if (group_segment_[other] < 0)
          continue;
        if (group_segment_[other] != here)
          break;
#pragma unroll
        for (int c = 0; c < Size; ++c)
          if (columns_.at + c < job_.cols)
            sum[c] += group_sums_[other * job_.cols + columns_.at + c];
      }
      const i64 id = first_segment_ + here;
      const i64 segment_begin = max(job_.row_begin[id], entries_.begin);
      const i64 segment_end = min(job_.row_begin[id + 1], entries_.end);
      if (job_.finish == Finish::add || (segment_begin >= begin_ && segment_end <= end_)) {
        finish_segment(id, job_.row_index[id], sum);
      } else {
        const i64 slot = 2 * i64{blockIdx.x} + (segment_begin < begin_ ? 0 : 1);
        if (lane_ == 0)
          job_.carry_segment[slot] = id;
        columns_.keep(job_.carry + slot * job_.cols, sum);
      }
    }
  }

  __device__ __forceinline__ void finish_segment(i64 segment, i64 row, const Sum &sum) const {
    if (job_.finish == Finish::keep) {
      columns_.keep(job_.slots + segment * job_.cols, sum);
      return;
    }
    if (!job_.all_rows && (row < job_.rows.begin || row >= job_.rows.end))
      return;
    Term *to = static_cast<Term *>(job_.out) + row * job_.out_ld + job_.first_col;
    double result[Size];
#pragma unroll
    for (int c = 0; c < Size; ++c)
      result[c] = mixed && columns_.at + c < job_.cols ? unscaled(job_, columns_.at + c, sum[c]) : sum[c];
    if (job_.finish == Finish::add)
      columns_.add(to, result);
    else
      columns_.put(to, result, !mixed || job_.out_aligned);
  }

  /// Keeps what the group has of a segment that others may share: `which` is 0 for the segment in which the part
  /// begins, 1 for that in which it ends.
  __device__ __forceinline__ void keep_group_sum(int which, int segment, const Sum &sum) const {
    if (lane_ == 0)
      group_segment_[2 * group_ + which] = segment;
    columns_.keep(group_sums_ + (2 * group_ + which) * job_.cols, sum);
  }

  /// Says where a segment begins; what lies far beyond this range is only known to do so.
  __device__ __forceinline__ int begin_of(int segment) const {
    const i64 from = job_.row_begin[min(first_segment_ + segment, job_.segments)] - zero_;
    return from > 0x7fffffff ? 0x7fffffff : static_cast<int>(from);
  }

  /// Loads keys and values from entry q on; those that are not the part's are 0.
  __device__ __forceinline__ void load(int q, Keys &key, Values &value) const {
    load_some(q, static_cast<const Key *>(job_.keys) + zero_, key);
    if (mixed && job_.f32_values)
      load_some(q, static_cast<const float *>(job_.values) + zero_, value);
    else
      load_some(q, static_cast<const Term *>(job_.values) + zero_, value);
  }
  template <class From, class To>
  __device__ __forceinline__ void load_some(int q, const From *from, To (&to)[Ahead]) const {
    constexpr int each = std::min<int>(Ahead, 16 / sizeof(From));
    if (q >= lo_ && q + Ahead <= hi_) {
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
        to[j] = q + j >= lo_ && q + j < hi_ ? static_cast<To>(from[q + j]) : To{0};
    }
  }

  /// Adds what was summed in f32 to the sum in f64.
  __device__ __forceinline__ static void fold(Sum &sum, Low &low) {
    if constexpr (sizeof(Term) == 4) {
#pragma unroll
      for (int c = 0; c < Size; ++c) {
        sum[c] += static_cast<double>(low[c]);
        low[c] = 0;
      }
    }
  }

  const SortedJob &job_;
  unsigned char *const shared_;
  double *const group_sums_; // [2 * groups][cols] of segments that groups share; staged rows stand behind
  int *const group_segment_; // [2 * groups] of which segment, -1 for none
  const int lane_;
  const int group_;
  const LaneColumns<Row, Lanes, Size> columns_;
  const u32 my_bytes_;
  const i64 first_bytes_;
  const int factors_;

  Range entries_; // of all blocks
  i64 begin_;     // the block's range of them
  i64 end_;
  i64 tile_;
  i64 first_segment_;
  i64 tile_segments_; // where the tile's end
  i64 zero_;
  int lo_; // the group's part
  int hi_;
  int q_;
  int segment_;
  int next_; // where the next segment begins, and the one after it
  int next2_;
  i64 row_;
  bool whole_; // the segment began in this group's part
};

template <class Row, class Term, class Key, int Factors, int Lanes, int Size, int Threads, int Ahead>
__global__ void __launch_bounds__(Threads, 1) walk_sorted(const __grid_constant__ SortedJob job) {
  using Walk = SortedWalk<Row, Term, Key, Factors, Lanes, Size, Threads, Ahead>;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ int group_segment[2 * Walk::groups];
  Walk(job, shared, group_segment).run();
}

} // namespace td::kernels::cuda
