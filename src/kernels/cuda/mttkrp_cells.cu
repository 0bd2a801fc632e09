// MTTKRP on a partial product of a dense tensor. Memory bounds it: threads of a block read neighbouring numbers, some
// cells ahead, and each of them keeps to one column. Where cells of a row lie together, a block has one row of the
// result, or a part of its cells; where rows lie together, as those of the first mode do, a block has neighbouring
// rows. Sums of parts are added in order: the same bits in each run.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/dense_layout.hpp"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/mttkrp.hpp"
#include "kernels/cuda/parts.cuh"

namespace td::kernels::cuda {

namespace {

/// Cells that a thread fetches before it uses the first.
constexpr int cells_ahead(int wide) { return wide > 1 ? 4 : 8; }

/// The other modes, first to last: of a row's cells, numbered in this order, a thread takes every so many.
template <class T> struct CellsJob {
  const T *cells;
  i64 ld;
  i64 columns;
  bool grows; // with one part: the result
  CellsLayout layout;
  Range entries; // of the cells
  Range wanted;  // of a row's cells: those that may be among the entries
  i64 left;      // cells from a row's to the next one's
  i64 first;     // row of the result
  i64 rows;
  i64 stride; // numbers from a thread's cell to its next one, unless modes below the result's go round
  i64 gap;    // numbers more where they do
  int below;  // modes below the result's
  int others;
  i64 dims[max_order - 1];
  i64 strides[max_order - 1]; // numbers, of cells
  i64 steps[max_order - 1];   // by how much each index grows from a thread's cell to its next one
  const T *factors[max_order - 1];
  i64 factor_ld[max_order - 1];
};

/// Where a thread is in the cells of a row, of which it has `Wide` columns. Others: how many other modes there are; 0:
/// any number, whose indices are not in registers.
template <class T, class Index, int Others, int Wide, bool Aligned> struct CellsCursor {
  using Numbers = Vector<T, Wide>;
  static constexpr int most = Others > 0 ? Others : max_order - 1;
  const CellsJob<T> &job;
  const T *at;
  Index index[most];

  __device__ CellsCursor(const CellsJob<T> &all, i64 row, i64 cell, i64 column) : job(all) {
    at = job.cells + row * job.left * job.ld + column;
#pragma unroll
    for (int m = 0; m < others(); ++m) {
      const i64 above = cell / job.dims[m];
      index[m] = static_cast<Index>(cell - above * job.dims[m]);
      at += static_cast<i64>(index[m]) * job.strides[m];
      cell = above;
    }
  }
  static __device__ Numbers load(const T *from) {
    if constexpr (Aligned) {
      return *reinterpret_cast<const Numbers *>(from);
    } else {
      Numbers some;
#pragma unroll
      for (int w = 0; w < Wide; ++w)
        some.v[w] = from[w];
      return some;
    }
  }
  __device__ void weigh(i64 column, double (&weight)[Wide]) const {
#pragma unroll
    for (int m = 0; m < others(); ++m) {
      const T *const row = job.factors[m] + static_cast<i64>(index[m]) * job.factor_ld[m];
      const Numbers some = load(row + column);
#pragma unroll
      for (int w = 0; w < Wide; ++w)
        weight[w] = m == 0 ? static_cast<double>(some.v[w]) : weight[w] * static_cast<double>(some.v[w]);
    }
  }
  __device__ void next() {
    at += job.stride;
    Index carry = 0;
#pragma unroll
    for (int m = 0; m < others(); ++m) {
      const auto dim = static_cast<Index>(job.dims[m]);
      const Index sum = index[m] + static_cast<Index>(job.steps[m]) + carry;
      carry = sum >= dim;
      index[m] = carry ? sum - dim : sum;
      if (carry && m + 1 == job.below)
        at += job.gap;
    }
  }
  __device__ int others() const { return Others > 0 ? Others : job.others; }
};

/// All groups of a block have sums of the same row: the first one's become those of all.
template <int Wide>
__device__ void add_groups(const CellsLayout &l, int group, double (&sums)[Wide][block_threads], double (&sum)[Wide]) {
  const int t = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int w = 0; w < Wide; ++w)
    sums[w][t] = sum[w];
  for (int left = l.groups; left > 1;) {
    const int half = (left + 1) / 2;
    __syncthreads();
    if (group + half < left)
#pragma unroll
      for (int w = 0; w < Wide; ++w)
        sums[w][t] += sums[w][t + half * l.width];
    left = half;
  }
#pragma unroll
  for (int w = 0; w < Wide; ++w)
    sum[w] = sums[w][t];
}

/// part[part][row][column] := the sum of the block's cells; blockIdx.y counts tiles of columns. With one part these are
/// the rows of the result.
template <class T, class Out, class Index, int Others, int Wide, bool Aligned>
__global__ void __launch_bounds__(block_threads, Others > 0 ? 3 : 2)
    sum_cells(const __grid_constant__ CellsJob<T> job, Rows<Out> part) {
  constexpr int ahead = cells_ahead(Wide);
  __shared__ double sums[Wide][block_threads];
  await_kernel_before();
  let_next_start();
  const CellsLayout &l = job.layout;
  const int t = static_cast<int>(threadIdx.x);
  const int group = t / l.width;
  const i64 r = (i64{blockIdx.y} * l.width + (t - group * l.width)) * Wide;
  const bool counts = group < l.groups && r < job.columns;
  const i64 row_blocks = (job.rows + l.rows - 1) / l.rows;
  const T *const begin = job.cells + job.entries.begin * job.ld;
  const T *const end = job.cells + job.entries.end * job.ld;
  for (i64 work = blockIdx.x; work < row_blocks * l.parts; work += gridDim.x) {
    const i64 block = work / l.parts;
    const i64 number = work - block * l.parts;
    const i64 row = l.rows > 1 ? block * l.rows + group : block;
    const Range own = part_of(job.wanted, number, l.parts);
    double sum[Wide] = {};
    if (counts && row < job.rows) {
      i64 c = own.begin + (l.rows > 1 ? 0 : group);
      CellsCursor<T, Index, Others, Wide, Aligned> cursor(job, job.first + row, c, r);
      while (c < own.end) {
        Vector<T, Wide> cell[ahead];
        double weight[ahead][Wide];
#pragma unroll
        for (int a = 0; a < ahead; ++a) {
          cell[a] = {};
#pragma unroll
          for (int w = 0; w < Wide; ++w)
            weight[a][w] = 0;
          if (c < own.end && cursor.at >= begin && cursor.at < end) {
            cell[a] = cursor.load(cursor.at);
            cursor.weigh(r, weight[a]);
          }
          cursor.next();
          c += l.step;
        }
#pragma unroll
        for (int a = 0; a < ahead; ++a)
#pragma unroll
          for (int w = 0; w < Wide; ++w)
            sum[w] += static_cast<double>(cell[a].v[w]) * weight[a][w];
      }
    }
    if (l.rows == 1 && l.groups > 1)
      add_groups(l, group, sums, sum);
    if (counts && row < job.rows && (l.rows > 1 || group == 0))
#pragma unroll
      for (int w = 0; w < Wide; ++w) {
        Out &to = part(number * job.rows + row, r + w);
        to = static_cast<Out>(job.grows ? static_cast<double>(to) + sum[w] : sum[w]);
      }
    __syncthreads();
  }
}

template <class T> CellsJob<T> job_of(const CellsView &x, const MttkrpArgs &args, const CellsLayout &layout) {
  const auto mode = static_cast<std::size_t>(args.mode);
  CellsJob<T> job{};
  const auto cells = rows_of<T>(x.rows);
  job.cells = cells.data;
  job.ld = cells.ld;
  job.columns = cells.cols;
  job.grows = args.add && layout.parts == 1;
  job.layout = layout;
  job.entries = args.entries;
  job.first = args.rows.begin;
  job.rows = args.rows.size();
  job.left = 1;
  job.below = args.mode;
  i64 stride = 1;
  i64 step = layout.step;
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    if (m == mode) {
      job.left = stride;
    } else {
      const int k = job.others++;
      job.dims[k] = x.dims[m];
      job.strides[k] = stride * job.ld;
      job.steps[k] = step % x.dims[m];
      step /= x.dims[m];
      job.stride += job.steps[k] * job.strides[k];
      const auto factor = rows_of<T>(args.factors[m]);
      job.factors[k] = factor.data;
      job.factor_ld[k] = factor.ld;
    }
    stride *= x.dims[m];
  }
  const i64 n = x.dims[mode];
  job.gap = job.left * (n - 1) * job.ld;
  const i64 slice = job.left * n; // of the modes above
  job.wanted = {args.entries.begin / slice * job.left, (args.entries.end + slice - 1) / slice * job.left};
  return job;
}

/// Whether pairs of columns can be fetched together.
template <class T> bool has_aligned_pairs(const CellsJob<T> &job) {
  const auto even = [](const T *data, i64 ld) {
    return reinterpret_cast<std::uintptr_t>(data) % (2 * sizeof(T)) == 0 && ld % 2 == 0;
  };
  bool all = even(job.cells, job.ld);
  for (int m = 0; m < job.others; ++m)
    all &= even(job.factors[m], job.factor_ld[m]);
  return all;
}

template <class T, class Out> auto kernel_for(const CellsJob<T> &job, bool long_modes) {
  const bool aligned = job.layout.wide == 1 || has_aligned_pairs(job);
  const auto of_others = [&](auto others) {
    constexpr int count = decltype(others)::value;
    return job.layout.wide == 1 ? sum_cells<T, Out, std::uint32_t, count, 1, true>
                                : sum_cells<T, Out, std::uint32_t, count, 2, true>;
  };
  if (aligned && !long_modes && job.others == 1)
    return of_others(std::integral_constant<int, 1>{});
  if (aligned && !long_modes && job.others == 2)
    return of_others(std::integral_constant<int, 2>{});
  if (aligned && !long_modes && job.others == 3)
    return of_others(std::integral_constant<int, 3>{});
  return job.layout.wide == 1 ? sum_cells<T, Out, i64, 0, 1, true> : sum_cells<T, Out, i64, 0, 2, false>;
}

template <class T, class Out> void launch(Gpu &device, const CellsJob<T> &job, Rows<Out> part, bool long_modes) {
  const CellsLayout &l = job.layout;
  const i64 work = (job.rows + l.rows - 1) / l.rows * l.parts;
  const i64 across = i64{l.width} * l.wide;
  const dim3 grid(blocks_for(device, work, 1), static_cast<unsigned>((job.columns + across - 1) / across));
  launch_early(device, kernel_for<T, Out>(job, long_modes), grid, l.threads(), 0, job, part);
}

} // namespace

void mttkrp_cells(Gpu &device, const CellsView &x, const MttkrpArgs &args, double *parts) {
  const CellsLayout layout = cells_layout(x.dims, args.mode, args.out.cols, device.multiprocessors());
  const bool long_modes = *std::max_element(x.dims.begin(), x.dims.end()) >= i64{1} << 31;
  dispatch(args.out.type, [&](auto zero) {
    using T = decltype(zero);
    const CellsJob<T> job = job_of<T>(x, args, layout);
    const Rows<T> out = rows_of<T>(args.out.slice(args.rows.begin, args.rows.end));
    if (layout.parts == 1)
      return launch(device, job, out, long_modes);
    launch(device, job, Rows<double>{parts, layout.parts * job.rows, job.columns, job.columns}, long_modes);
    add_parts(device, parts, layout.parts, out, args.add);
  });
}

void CudaBackend::mttkrp_cells(const CellsView &x, const MttkrpArgs &args) {
  const CurrentDevice current = enter();
  if (args.rows.size() == 0)
    return;
  const i64 parts = cells_layout(x.dims, args.mode, args.out.cols, device_.multiprocessors()).parts;
  const Scratch<double> sums(device_, parts > 1 ? parts * args.rows.size() * args.out.cols : 0,
                             "sums of MTTKRP on a partial product");
  cuda::mttkrp_cells(device_, x, args, sums.data());
}

} // namespace td::kernels::cuda
