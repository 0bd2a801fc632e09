#include "kernels/cuda/by_row.hpp"
#include "kernels/cuda/entries.cuh"
#include "kernels/cuda/mttkrp.hpp"

namespace td::kernels::cuda {

namespace {

/// The terms of those of stored row `row`'s entries that are asked for, column r.
template <class Entries, class T>
__device__ T sum_of_row(const Entries &x, const Factors<T> &factors, const i64 *base, Range entries, i64 row, i64 r) {
  T sum = 0;
  const i64 end = min(x.row_begin[row + 1], entries.end);
  for (i64 k = max(x.row_begin[row], entries.begin); k < end; ++k)
    sum += times_factors(x, typename Entries::Entry{x.keys[k], base, 0}, x.values[k], factors, x.mode, r);
  return sum;
}

/// A group of lanes a stored row. Rows that are not stored are zero before.
template <class Entries, class T>
__global__ void sum_stored_rows(const __grid_constant__ Entries x, const __grid_constant__ Factors<T> factors,
                                Rows<T> out, Range rows, Range entries, int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const i64 groups = i64{gridDim.x} * blockDim.x / lanes;
  for (i64 row = (i64{blockIdx.x} * blockDim.x + threadIdx.x) / lanes; row < x.rows; row += groups) {
    const i64 i = x.row_index[row];
    if (i < rows.begin || i >= rows.end)
      continue;
    for (i64 r = lane; r < out.cols; r += lanes)
      out(i, r) = sum_of_row(x, factors, x.tile_base, entries, row, r);
  }
}

/// A group of lanes a row of the result, which looks for its pieces in every tile.
template <class Entries, class T>
__global__ void sum_tiled_rows(const __grid_constant__ Entries x, const __grid_constant__ Factors<T> factors,
                               const i64 *tile_light, Rows<T> out, Range rows, Range entries, int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const i64 groups = i64{gridDim.x} * blockDim.x / lanes;
  for (i64 i = rows.begin + (i64{blockIdx.x} * blockDim.x + threadIdx.x) / lanes; i < rows.end; i += groups)
    for (i64 r = lane; r < out.cols; r += lanes) {
      T sum = 0;
      for (i64 tile = 0; tile < x.tiles; ++tile) {
        const i64 ends[3] = {x.tile_begin[tile], tile_light[tile], x.tile_begin[tile + 1]};
        for (int part = 0; part < 2; ++part) { // its heavy rows, its light ones
          const i64 row = lower_bound(x.row_index, ends[part], ends[part + 1], i);
          if (row < ends[part + 1] && x.row_index[row] == i)
            sum += sum_of_row(x, factors, x.base_of(tile), entries, row, r);
        }
      }
      out(i, r) = sum;
    }
}

} // namespace

void mttkrp_sorted(Device &device, const SortedView &view, const MttkrpArgs &args) {
  dispatch(view.type, [&](auto zero) {
    using T = decltype(zero);
    with_keys<T>(view, [&](const auto &x) {
      const Rows<T> out = rows_of<T>(args.out);
      const Factors<T> factors(args.factors);
      const int lanes = lanes_for(out.cols);
      const int each = block_threads / lanes;
      if (view.tiles > 1) {
        sum_tiled_rows<<<blocks_for(device, args.rows.size(), each), block_threads, 0, device.stream()>>>(
            x, factors, view.tile_light, out, args.rows, args.entries, lanes);
      } else {
        set_zero(device, args.out.slice(args.rows.begin, args.rows.end));
        sum_stored_rows<<<blocks_for(device, view.rows, each), block_threads, 0, device.stream()>>>(
            x, factors, out, args.rows, args.entries, lanes);
      }
      check_launch("MTTKRP of a sorted copy");
    });
  });
}

} // namespace td::kernels::cuda
