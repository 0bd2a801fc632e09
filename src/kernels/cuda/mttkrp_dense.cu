#include "kernels/cuda/entries.cuh"
#include "kernels/cuda/mttkrp.hpp"

namespace td::kernels::cuda {

namespace {

/// part[p, i, r] := the terms of row i from the p-th part of its cells.
template <class T, class Term>
__global__ void sum_cells(const __grid_constant__ DenseEntries<T> x, const __grid_constant__ Factors<T> factors,
                          int mode, i64 others, Range rows, i64 columns, i64 parts, Term *part, int lanes) {
  __shared__ Term sums[block_threads];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes;
  const int groups = block_threads / lanes;
  const i64 left = x.strides[mode];
  const i64 count = rows.end - rows.begin;
  for (i64 work = blockIdx.x; work < count * parts; work += gridDim.x) {
    const i64 i = rows.begin + work % count;
    const Range cells = part_of({0, others}, work / count, parts);
    for (i64 first = 0; first < columns; first += lanes) {
      const i64 r = first + lane;
      Term sum = 0;
      for (i64 c = cells.begin + group; c < cells.end && r < columns; c += groups) {
        const i64 k = c % left + left * (i + x.dims[mode] * (c / left));
        sum += times_factors(x, k, static_cast<Term>(x.values[k]), factors, mode, r);
      }
      sums[threadIdx.x] = sum;
      __syncthreads();
      if (group == 0 && r < columns) {
        for (int g = 1; g < groups; ++g)
          sum += sums[g * lanes + lane];
        part[work * columns + r] = sum;
      }
      __syncthreads();
    }
  }
}

template <class T> __global__ void sum_parts(const T *part, i64 parts, Rows<T> out, Range rows, bool add) {
  const i64 cells = (rows.end - rows.begin) * out.cols;
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < cells; k += i64{gridDim.x} * blockDim.x) {
    T &to = out(rows.begin + k / out.cols, k % out.cols);
    T sum = add ? to : T{0};
    for (i64 p = 0; p < parts; ++p)
      sum += part[p * cells + k];
    to = sum;
  }
}

} // namespace

void mttkrp_dense(Gpu &device, const DenseView &view, const MttkrpArgs &args) {
  dispatch_mixed(view.type, args.out.type, [&](auto zero, auto term) {
    using T = decltype(zero);
    using Term = decltype(term);
    const DenseEntries<T> x(view);
    const Rows<Term> out = rows_of<Term>(args.out);
    const i64 others = entries_of(view) / view.dims[static_cast<std::size_t>(args.mode)];
    const i64 rows = args.rows.size();
    const i64 parts = dense_parts(rows, others, device.multiprocessors());
    const Scratch<Term> part(device, parts * rows * out.cols, "parts of a dense MTTKRP");
    sum_cells<<<blocks_for(device, rows * parts, 1), block_threads, 0, device.stream()>>>(
        x, Factors<T>(args.factors), args.mode, others, args.rows, out.cols, parts, part.data(), lanes_for(out.cols));
    check_launch("a dense MTTKRP");
    sum_parts<<<blocks_for(device, rows * out.cols, block_threads), block_threads, 0, device.stream()>>>(
        part.data(), parts, out, args.rows, args.add);
    check_launch("a dense MTTKRP");
  });
}

} // namespace td::kernels::cuda
