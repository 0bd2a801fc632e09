#include <algorithm>

#include "kernels/cuda/by_row.hpp"
#include "kernels/cuda/factor_rows.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/sorted_walk.hpp"

namespace td::kernels::cuda {

namespace {

constexpr int empty_rows_at_once = 4096; // that a block looks at
// All rows of so many bytes are zeroed at once. The bound is an estimate: to look for the empty ones takes a launch and
// a search in memory, some 6 microseconds, in which that much is written.
constexpr i64 zeroed_at_once = i64{16} << 20;

/// Adds up what blocks carry out of segments that they share, in the order of the blocks. A block for each slot of the
/// list; the one with a segment's first slot does it.
template <class Term> __global__ void add_carried(const __grid_constant__ SortedJob job, int slots) {
  constexpr int parts = 32;
  __shared__ double sums[parts][warp + 1];
  const int first = static_cast<int>(blockIdx.x);
  const i64 segment = job.carry_segment[first];
  if (segment < 0)
    return;
  int before = first - 1;
  while (before >= 0 && job.carry_segment[before] < 0)
    --before;
  if (before >= 0 && job.carry_segment[before] == segment)
    return;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int part = static_cast<int>(threadIdx.x) / warp;
  for (int col0 = 0; col0 < job.cols; col0 += warp) {
    const int col = col0 + lane;
    double sum = 0;
    if (col < job.cols)
      for (int slot = first + part; slot < slots; slot += parts)
        if (job.carry_segment[slot] == segment)
          sum += job.carry[i64{slot} * job.cols + col];
    sums[part][lane] = sum;
    __syncthreads();
    if (part == 0 && col < job.cols) {
      sum = 0;
      for (int p = 0; p < parts; ++p)
        sum += sums[p][lane];
      if (job.finish == Finish::keep)
        job.slots[segment * job.cols + col] = sum;
      else
        static_cast<Term *>(job.out)[job.row_index[segment] * job.out_ld + job.first_col + col] =
            static_cast<Term>(unscaled(job, col, sum));
    }
    __syncthreads();
  }
}

/// Adds up rows from their segments, in the order of tiles. A warp a row, whose lanes look for it in a tile each.
template <class Term>
__global__ void add_kept_segments(const __grid_constant__ SortedJob job, const i64 *tile_light, Range there,
                                  Range asked, bool add) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const i64 warps = i64{gridDim.x} * blockDim.x / warp;
  const i64 first_tile = part_holding(job.tile_begin, job.tiles, there.begin);
  const i64 end_tile = lower_bound(job.tile_begin, first_tile, job.tiles, there.end);
  for (i64 row = asked.begin + (i64{blockIdx.x} * blockDim.x + threadIdx.x) / warp; row < asked.end; row += warps)
    for (int col0 = 0; col0 < job.cols; col0 += warp) {
      Term *const to = static_cast<Term *>(job.out) + row * job.out_ld + job.first_col + col0 + lane;
      double sum = add && col0 + lane < job.cols ? static_cast<double>(*to) : 0;
      for (i64 tile0 = first_tile; tile0 < end_tile; tile0 += warp) {
        i64 found = -1;
        const i64 tile = tile0 + lane;
        if (tile < end_tile) {
          const i64 ends[3] = {job.tile_begin[tile], tile_light[tile], job.tile_begin[tile + 1]};
          for (int part = 0; part < 2; ++part) { // its heavy rows, its light ones
            const i64 segment = lower_bound(job.row_index, ends[part], ends[part + 1], row);
            if (segment < ends[part + 1] && job.row_index[segment] == row && job.row_begin[segment] < job.entries.end &&
                job.row_begin[segment + 1] > job.entries.begin)
              found = segment;
          }
        }
        for (unsigned have = __ballot_sync(0xffffffffu, found >= 0); have != 0; have &= have - 1) {
          const i64 segment = __shfl_sync(0xffffffffu, found, __ffs(static_cast<int>(have)) - 1);
          if (col0 + lane < job.cols)
            sum += unscaled(job, col0 + lane, job.slots[segment * job.cols + col0 + lane]);
        }
      }
      if (col0 + lane < job.cols)
        *to = static_cast<Term>(sum);
    }
}

/// Rows asked for := 0 where none of the entries are; the segments that are there are whole rows, ascending. Of most
/// tensors such rows are few; to zero all that are written afterwards took two fifths of what the solve takes (H200).
template <class Term>
__global__ void zero_empty_rows(const __grid_constant__ SortedJob job, Range there, Rows<Term> out) {
  __shared__ u32 full[empty_rows_at_once / 32]; // a bit a row
  __shared__ i64 first;
  const i64 begin = job.rows.begin + i64{blockIdx.x} * empty_rows_at_once;
  const i64 end = min(begin + empty_rows_at_once, job.rows.end);
  for (int k = static_cast<int>(threadIdx.x); k < empty_rows_at_once / 32; k += static_cast<int>(blockDim.x))
    full[k] = 0;
  if (threadIdx.x == 0)
    first = lower_bound(job.row_index, there.begin, there.end, begin);
  __syncthreads();
  for (i64 k = first + threadIdx.x; k < there.end; k += blockDim.x) {
    const i64 row = job.row_index[k];
    if (row >= end)
      break;
    if (job.row_begin[k + 1] > job.entries.begin && job.row_begin[k] < job.entries.end)
      atomicOr(&full[(row - begin) / 32], u32{1} << (row - begin) % 32);
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (i64 k = threadIdx.x / warp; begin + k * 32 < end; k += blockDim.x / warp) {
    const i64 rows = min(end - begin - k * 32, i64{32});
    for (u32 empty = ~full[k] & (~u32{0} >> (32 - rows)); empty != 0; empty &= empty - 1)
      for (i64 column = lane; column < out.cols; column += warp)
        out(begin + k * 32 + __ffs(static_cast<int>(empty)) - 1, column) = 0;
  }
}

/// Rows of `to` += those of `from`, which begin with the first of them.
template <class T> __global__ void add_rows(const T *from, i64 from_ld, Rows<T> to, Range rows) {
  const i64 size = (rows.end - rows.begin) * to.cols;
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < size; k += i64{gridDim.x} * blockDim.x)
    to(rows.begin + k / to.cols, k % to.cols) += from[k / to.cols * from_ld + k % to.cols];
}

struct Exponents {
  const double *of[most_factors];
  int count;
};

/// to[r] := the sum over factors, by which power of two their columns were divided.
__global__ void add_exponents(const __grid_constant__ Exponents exponents, i64 columns, int *to) {
  for (i64 r = threadIdx.x; r < columns; r += blockDim.x) {
    int sum = 0;
    for (int m = 0; m < exponents.count; ++m)
      sum += static_cast<int>(exponents.of[m][r]);
    to[r] = sum;
  }
}

SortedJob job_of(const SortedView &x, const MttkrpArgs &args) {
  SortedJob job{};
  job.keys = x.keys;
  job.values = x.values;
  job.f32_values = x.type == ValueType::f32;
  job.entries = args.entries;
  job.row_index = x.row_index;
  job.row_begin = x.row_begin;
  job.segments = x.rows;
  job.tiles = x.tiles;
  job.tile_begin = x.tile_begin;
  job.tile_base = x.tile_base;
  job.order = static_cast<int>(x.dims.size());
  job.out = args.out.data;
  job.out_ld = args.out.ld;
  job.out_aligned = is_aligned(args.out);
  job.rows = args.rows;
  job.all_rows = args.rows.begin == 0 && args.rows.end == args.out.rows;
  return job;
}

template <class Row, class Term> class Sum {
public:
  Sum(Gpu &device, const SortedView &x, const MttkrpArgs &args)
      : device_(device), x_(x), args_(args), layout_(x, args, device.chip()), job_(job_of(x, args)),
        others_(OtherFactors::of(x.layout, x.dims, args)) {
    job_.factors = others_.count;
    there_ = x.rows_there.size() > 0 ? x.rows_there : Range{0, x.rows};
    job_.finish = x.tiles == 1 ? Finish::write : args.conflicts == Conflicts::owner ? Finish::keep : Finish::add;
  }

  void run() {
    // Rows without entries, and before rows are added to.
    const bool covered = args_.full || (x_.rows == args_.out.rows && args_.entries.size() == x_.nnz);
    const bool none = args_.entries.size() == 0;
    const bool few = args_.rows.size() * args_.out.cols * size_of(args_.out.type) <= zeroed_at_once;
    const bool some = job_.finish == Finish::write && !covered;
    if (!args_.add && (none || job_.finish == Finish::add || (some && few)))
      set_zero(device_, args_.out.slice(args_.rows.begin, args_.rows.end));
    if (none)
      return;
    if (some && !few) {
      const i64 blocks = (args_.rows.size() + empty_rows_at_once - 1) / empty_rows_at_once;
      zero_empty_rows<Term><<<static_cast<unsigned>(blocks), block_threads, 0, device_.stream()>>>(
          job_, there_, rows_of<Term>(args_.out));
      check_launch("rows without entries");
    }
    const i64 cols = args_.out.cols;
    const Scratch<double> carry(device_, i64{2} * layout_.blocks * layout_.columns, "sums of rows that blocks share");
    const Scratch<i64> carry_segment(device_, i64{2} * layout_.blocks, "sums of rows that blocks share");
    const Scratch<int> exponents(device_, args_.exponents.empty() ? 0 : cols, "exponents of columns");
    if (!args_.exponents.empty()) {
      add_exponents<<<1, block_threads, 0, device_.stream()>>>(exponents_of_others(), cols, exponents.data());
      check_launch("adding up exponents");
      job_.exponents = exponents.data();
    }
    const Scratch<double> slots(device_, job_.finish == Finish::keep ? there_.size() * layout_.columns : 0,
                                "sums of segments of rows");
    job_.carry = carry.data();
    job_.carry_segment = carry_segment.data();
    for (i64 first = 0; first < cols; first += layout_.columns) {
      const SortedLayout::Pass pass = layout_.pass(first);
      SortedJob job = job_;
      job.first_col = static_cast<int>(first);
      job.cols = pass.cols;
      job.slots = slots.data() - there_.begin * job.cols;
      job.pitch = static_cast<u32>(pass.pitch);
      for (std::size_t k = 0; k < pass.modes.size(); ++k) {
        const SortedLayout::Mode &mode = pass.modes[k];
        job.factor[k] = others_.factor[mode.mode < args_.mode ? mode.mode : mode.mode - 1];
        job.factor[k].staged = static_cast<int>(mode.staged);
        job.factor[k].staged_at = static_cast<u32>(mode.at);
      }
      start_walk<Row, Term>(device_, job, layout_, pass.shared);
      finish(job);
    }
  }

private:
  Exponents exponents_of_others() const {
    Exponents all{};
    for (std::size_t m = 0; m < args_.exponents.size(); ++m)
      if (static_cast<int>(m) != args_.mode)
        all.of[all.count++] = args_.exponents[m];
    return all;
  }

  void finish(const SortedJob &job) {
    const int carried = 2 * layout_.blocks;
    if (job.finish != Finish::add) {
      add_carried<Term><<<static_cast<unsigned>(carried), 1024, 0, device_.stream()>>>(job, carried);
      check_launch("adding up rows that blocks share");
    }
    if (job.finish == Finish::keep) {
      const unsigned blocks = blocks_for(device_, args_.rows.size(), block_threads / warp);
      add_kept_segments<Term>
          <<<blocks, block_threads, 0, device_.stream()>>>(job, x_.tile_light, there_, args_.rows, args_.add);
      check_launch("adding up segments of rows");
    }
  }

  Gpu &device_;
  const SortedView &x_;
  const MttkrpArgs &args_;
  SortedLayout layout_;
  SortedJob job_;
  OtherFactors others_;
  Range there_; // rows whose entries may be there
};

// A row of a copy in one tile is written by whoever has its end, so what is added to goes by way of rows of its own.
template <class Row, class Term> void add_whole_rows(Gpu &device, const SortedView &x, const MttkrpArgs &args) {
  const i64 ld = (args.out.cols + 3) / 4 * 4; // rows of 16 bytes
  const Scratch<Term> sums(device, args.rows.size() * ld, "sums of rows");
  MttkrpArgs own = args;
  own.add = false;
  own.out.ld = ld;
  own.out.data = sums.data() - args.rows.begin * ld;
  Sum<Row, Term>(device, x, own).run();
  const unsigned blocks = blocks_for(device, args.rows.size() * args.out.cols, block_threads);
  add_rows<Term><<<blocks, block_threads, 0, device.stream()>>>(sums.data(), ld, rows_of<Term>(args.out), args.rows);
  check_launch("adding up rows");
}

} // namespace

void mttkrp_sorted(Gpu &device, const SortedView &x, const MttkrpArgs &args) {
  const ValueType rows = args.factors[args.mode == 0 ? 1 : 0].type;
  dispatch_mixed(rows, args.out.type, [&](auto row, auto term) {
    using Row = decltype(row);
    using Term = decltype(term);
    if (args.add && x.tiles == 1)
      add_whole_rows<Row, Term>(device, x, args);
    else
      Sum<Row, Term>(device, x, args).run();
  });
}

} // namespace td::kernels::cuda
