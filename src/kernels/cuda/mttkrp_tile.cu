// MTTKRP of a dense tensor without matrix products: ELEM, SLICE and TILE of Kosmacher, Phipps and Rajamanickam, one
// kernel whose parameter is the width of a tile (dense_variants.hpp). A group of lanes goes over tiles of a few
// neighbouring slices, fiber by fiber, and its lanes hold columns of their rows. The paper adds each tile's sums to the
// result with atomic additions; here they stay in registers over all tiles of a group, and groups are added in order,
// so that results are the same in each run. Terms and sums are f64 whatever the tensor's type.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/dense_variants.hpp"
#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/parts.cuh"

namespace td::kernels::cuda {

namespace {

/// A mode other than the one that is asked for.
template <class T> struct Other {
  const T *data; // its factor
  i64 ld;
  i64 dim;
  i64 width; // of a tile
  i64 step;  // from index to index in the tensor
};

template <class T> struct Job {
  const T *values; // of the first row asked for
  i64 row_step;    // from slice to slice in the tensor
  i64 rows;
  i64 row_groups;
  i64 rank;
  i64 column_tiles;
  i64 tiles;
  i64 parts;
  int lanes;
  int others;
  Other<T> modes[max_order - 1]; // the first one's indices are nearest in memory
  double *partial;               // [parts][rows][rank]
};

/// A fiber of a tile, along the first of the other modes, and how to come to the next ones.
template <class T> class Walk {
public:
  __device__ Walk(const Job<T> &job, i64 tile) : job_(job) {
    for (int m = 0; m < job.others; ++m) {
      const Other<T> &mode = job.modes[m];
      const i64 tiles = (mode.dim + mode.width - 1) / mode.width;
      begin_[m] = tile % tiles * mode.width;
      tile /= tiles;
    }
    enter();
  }

  __device__ i64 index(int m) const { return index_[m]; }
  __device__ i64 length() const { return end(0) - index_[0]; }
  /// Where the fiber begins in a slice.
  __device__ i64 place() const { return place_; }

  /// Goes to the next fiber of the tile; false where there is none.
  __device__ bool next_fiber() {
    for (int m = 1; m < job_.others; ++m) {
      place_ += job_.modes[m].step;
      if (++index_[m] < end(m))
        return true;
      place_ -= (index_[m] - begin_[m]) * job_.modes[m].step;
      index_[m] = begin_[m];
    }
    return false;
  }

  /// There is one.
  __device__ void next_tile() {
    for (int m = 0; m < job_.others; ++m) {
      begin_[m] += job_.modes[m].width;
      if (begin_[m] < job_.modes[m].dim)
        break;
      begin_[m] = 0;
    }
    enter();
  }

private:
  __device__ i64 end(int m) const { return min(begin_[m] + job_.modes[m].width, job_.modes[m].dim); }
  __device__ void enter() {
    place_ = 0;
    for (int m = 0; m < job_.others; ++m) {
      index_[m] = begin_[m];
      place_ += begin_[m] * job_.modes[m].step;
    }
  }

  const Job<T> &job_;
  i64 begin_[max_order - 1]; // of the tile
  i64 index_[max_order - 1];
  i64 place_;
};

/// What a group sums: rows and columns of its own over a part of the tiles. Rows and columns that are not there are
/// those that are last, summed once more and not written, so that nothing is asked for in loops.
template <class T, int Each> struct Sums {
  i64 row_at[tile_rows]; // in the tensor
  i64 column[Each];
  double sum[tile_rows][Each] = {};

  __device__ Sums(const Job<T> &job, i64 first_row, i64 first_column) {
#pragma unroll
    for (int i = 0; i < tile_rows; ++i)
      row_at[i] = min(first_row + i, job.rows - 1) * job.row_step;
#pragma unroll
    for (int e = 0; e < Each; ++e)
      column[e] = min(first_column + e * job.lanes, job.rank - 1);
  }

  /// Adds a fiber, times the rows of the other factors that all of it is multiplied by.
  __device__ void add(const Job<T> &job, const Walk<T> &walk) {
    double product[Each];
#pragma unroll
    for (int e = 0; e < Each; ++e)
      product[e] = 1;
    for (int m = 1; m < job.others; ++m) {
      const T *row = job.modes[m].data + walk.index(m) * job.modes[m].ld;
#pragma unroll
      for (int e = 0; e < Each; ++e)
        product[e] *= static_cast<double>(__ldg(row + column[e]));
    }
    const Other<T> &along = job.modes[0];
    const T *factor = along.data + walk.index(0) * along.ld;
    const T *values = job.values + walk.place();
    double fiber[tile_rows][Each] = {};
    const i64 length = walk.length();
#pragma unroll 2
    for (i64 k = 0; k < length; ++k) {
      double row[Each];
#pragma unroll
      for (int e = 0; e < Each; ++e)
        row[e] = static_cast<double>(__ldg(factor + column[e]));
#pragma unroll
      for (int i = 0; i < tile_rows; ++i) {
        const auto x = static_cast<double>(__ldg(values + row_at[i]));
#pragma unroll
        for (int e = 0; e < Each; ++e)
          fiber[i][e] += x * row[e];
      }
      factor += along.ld;
      values += along.step;
    }
#pragma unroll
    for (int i = 0; i < tile_rows; ++i)
#pragma unroll
      for (int e = 0; e < Each; ++e)
        sum[i][e] += product[e] * fiber[i][e];
  }

  __device__ void write(const Job<T> &job, i64 part, i64 first_row, i64 first_column) const {
#pragma unroll
    for (int i = 0; i < tile_rows; ++i)
#pragma unroll
      for (int e = 0; e < Each; ++e)
        if (first_row + i < job.rows && first_column + e * job.lanes < job.rank)
          job.partial[(part * job.rows + first_row + i) * job.rank + first_column + e * job.lanes] = sum[i][e];
  }
};

/// Neighbouring groups have the same tiles of neighbouring slices: they read the same rows of factors.
template <class T, int Each>
__global__ void __launch_bounds__(block_threads, 2) sum_tiles(const __grid_constant__ Job<T> job) {
  const i64 together = blockDim.x / job.lanes;
  const i64 work = job.row_groups * job.parts * job.column_tiles;
  for (i64 n = blockIdx.x * together + threadIdx.x / job.lanes; n < work; n += gridDim.x * together) {
    const i64 others = n / job.row_groups;
    const i64 part = others % job.parts;
    const i64 first_row = (n - others * job.row_groups) * tile_rows;
    const i64 first_column = others / job.parts * (i64{job.lanes} * Each) + threadIdx.x % job.lanes;
    Sums<T, Each> sums(job, first_row, first_column);
    const Range tiles = part_of({0, job.tiles}, part, job.parts);
    Walk<T> walk(job, tiles.begin);
    for (i64 tile = tiles.begin;; walk.next_tile()) {
      do
        sums.add(job, walk);
      while (walk.next_fiber());
      if (++tile == tiles.end)
        break;
    }
    sums.write(job, part, first_row, first_column);
  }
}

template <class T> Job<T> job_of(const DenseView &x, const MttkrpArgs &args, const TileLayout &l, double *partial) {
  Job<T> job{};
  i64 step = 1;
  for (int m = 0; m < static_cast<int>(x.dims.size()); ++m) {
    const auto at = static_cast<std::size_t>(m);
    if (m == args.mode)
      job.row_step = step;
    else
      job.modes[job.others++] = {static_cast<const T *>(args.factors[at].data), args.factors[at].ld, x.dims[at],
                                 std::min(l.width, x.dims[at]), step};
    step *= x.dims[at];
  }
  job.values = static_cast<const T *>(x.values) + args.rows.begin * job.row_step;
  job.rows = l.rows;
  job.row_groups = l.row_groups();
  job.rank = args.out.cols;
  job.column_tiles = l.column_tiles;
  job.tiles = l.tiles;
  job.parts = l.parts;
  job.lanes = l.lanes;
  job.partial = partial;
  return job;
}

template <class T, int Each> void launch(Gpu &device, const Job<T> &job) {
  const i64 groups = job.row_groups * job.parts * job.column_tiles;
  const i64 blocks = (groups + block_threads / job.lanes - 1) / (block_threads / job.lanes);
  constexpr i64 most = i64{1} << 30; // of a grid; those go on with what is left
  sum_tiles<T, Each><<<static_cast<unsigned>(std::min(blocks, most)), block_threads, 0, device.stream()>>>(job);
}

} // namespace

void mttkrp_tile(Gpu &device, const DenseView &x, const MttkrpArgs &args) {
  const i64 rank = args.out.cols;
  const TileLayout l = tile_layout(x.dims, args.mode, args.rows.size(), rank, x.type, args.dense, device.chip());
  const Scratch<double> partial(device, static_cast<i64>(l.partials(rank)), "sums of a dense MTTKRP");
  dispatch(x.type, [&](auto zero) {
    using T = decltype(zero);
    const Job<T> job = job_of<T>(x, args, l, partial.data());
    l.each == 1 ? launch<T, 1>(device, job) : launch<T, 2>(device, job);
  });
  check_launch("a dense MTTKRP");
  dispatch(args.out.type, [&](auto zero) {
    using Out = decltype(zero);
    add_parts(device, partial.data(), l.parts, rows_of<Out>(args.out.slice(args.rows.begin, args.rows.end)), args.add);
  });
}

} // namespace td::kernels::cuda
