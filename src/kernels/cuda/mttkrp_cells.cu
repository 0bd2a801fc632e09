// MTTKRP on a partial product of a dense tensor. A block sums a part of the cells of one row of the result, groups of
// lanes neighbouring cells each, and the parts are added in order: the same bits in each run. Memory bounds it, so the
// rows of cells are read once; a lane multiplies by the factor of the mode that runs fastest, and the sum over a run of
// it by the product of the other modes' rows.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/parts.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int cells_ahead = 4; // rows that a lane fetches before it uses the first

template <class T> struct CellsJob {
  Rows<const T> cells;
  i64 left, n;   // cells before a row's next index, rows
  i64 of_row;    // cells of a row
  i64 run_step;  // from one cell of a run to the next
  Range entries; // of the cells
  i64 first;     // row of the result
  i64 rows;
  i64 parts;
  int others; // modes, the one that runs fastest first
  Rows<const T> factors[max_order];
};

/// Which of `count` cells, `step` apart from `first` on, are in `wanted`.
__device__ Range wanted_of(i64 first, i64 step, i64 count, Range wanted) {
  const auto before = [&](i64 cell) { return cell <= first ? i64{0} : min(count, (cell - first + step - 1) / step); };
  if (wanted.begin <= first && first + (count - 1) * step < wanted.end)
    return {0, count};
  return {before(wanted.begin), before(wanted.end)};
}

/// part[part][row][column] := the sum of the block's cells, blockIdx.y counts tiles of `lanes` columns.
template <class T>
__global__ void __launch_bounds__(block_threads)
    sum_cells(const __grid_constant__ CellsJob<T> job, double *part, int lanes) {
  __shared__ double sums[block_threads];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int groups = block_threads / lanes;
  const i64 group = threadIdx.x / lanes;
  const i64 r = i64{blockIdx.y} * lanes + lane;
  const bool counts = r < job.cells.cols;
  const i64 column = counts ? r : 0;
  for (i64 work = blockIdx.x; work < job.rows * job.parts; work += gridDim.x) {
    const i64 row = work / job.parts;
    const Range own = part_of(part_of({0, job.of_row}, work % job.parts, job.parts), group, groups);
    double sum = 0;
    for (i64 c = own.begin; c < own.end;) {
      const i64 index = c % job.factors[0].rows;
      i64 rest = c / job.factors[0].rows;
      const i64 count = min(job.factors[0].rows - index, own.end - c);
      double slow = 1;
      for (int m = 1; m < job.others; ++m) {
        slow *= static_cast<double>(job.factors[m](rest % job.factors[m].rows, column));
        rest /= job.factors[m].rows;
      }
      const i64 first = c % job.left + job.left * (job.first + row + job.n * (c / job.left));
      const Range wanted = wanted_of(first, job.run_step, count, job.entries);
      double of_run = 0;
      for (i64 k = wanted.begin; k < wanted.end; k += cells_ahead) {
        T cell[cells_ahead];
        T fast[cells_ahead];
#pragma unroll
        for (int a = 0; a < cells_ahead; ++a) {
          const bool there = k + a < wanted.end;
          cell[a] = there ? job.cells(first + (k + a) * job.run_step, column) : T{0};
          fast[a] = there ? job.factors[0](index + k + a, column) : T{0};
        }
#pragma unroll
        for (int a = 0; a < cells_ahead; ++a)
          of_run += static_cast<double>(cell[a]) * static_cast<double>(fast[a]);
      }
      sum += slow * of_run;
      c += count;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < lanes && counts) {
      for (int g = 1; g < groups; ++g)
        sum += sums[g * lanes + lane];
      part[(work % job.parts * job.rows + row) * job.cells.cols + r] = sum;
    }
    __syncthreads();
  }
}

template <class T> CellsJob<T> job_of(const CellsView &x, const MttkrpArgs &args, int multiprocessors) {
  const auto mode = static_cast<std::size_t>(args.mode);
  CellsJob<T> job{};
  job.cells = rows_of<T>(x.rows);
  job.left = 1;
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    if (m < mode)
      job.left *= x.dims[m];
    if (m != mode)
      job.factors[job.others++] = rows_of<T>(args.factors[m]);
  }
  job.n = x.dims[mode];
  job.of_row = x.count() / job.n;
  job.run_step = args.mode == 0 ? job.n : 1;
  job.entries = args.entries;
  job.first = args.rows.begin;
  job.rows = args.rows.size();
  job.parts = cells_parts(job.n, job.of_row, args.out.cols, multiprocessors);
  return job;
}

} // namespace

void CudaBackend::mttkrp_cells(const CellsView &x, const MttkrpArgs &args) {
  const CurrentDevice current = enter();
  const i64 columns = args.out.cols;
  if (args.rows.size() == 0)
    return;
  const int lanes = lanes_for(columns);
  dispatch(args.out.type, [&](auto zero) {
    using T = decltype(zero);
    const CellsJob<T> job = job_of<T>(x, args, device_.multiprocessors());
    const Scratch<double> part(device_, job.parts * job.rows * columns, "sums of MTTKRP on a partial product");
    const dim3 grid(blocks_for(device_, job.rows * job.parts, 1), static_cast<unsigned>((columns + lanes - 1) / lanes));
    sum_cells<<<grid, block_threads, 0, device_.stream()>>>(job, part.data(), lanes);
    check_launch("MTTKRP on a partial product");
    add_parts(device_, part.data(), job.parts, rows_of<T>(args.out.slice(args.rows.begin, args.rows.end)), false);
  });
}

} // namespace td::kernels::cuda
