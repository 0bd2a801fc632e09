// A tall matrix times R x R ones. A warp holds 32 rows.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/solve.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int warps = 4;
constexpr int ahead = 4; // times four columns that a warp fetches before it uses the first
constexpr int tiles = static_cast<int>(small_rank) / mma_tile; // of columns in a row that a warp keeps whole
constexpr int ld = solve_ld(tiles);

/// 32 rows and as many columns of a product, in a warp's registers.
struct Tile {
  TileEntries sum = {};

  /// Adds left(row, k) * right(k, column) over k in [begin, end); rows and columns count from the tile's first.
  template <class Left, class Right> __device__ void add(i64 begin, i64 end, Left &&left, Right &&right) {
    const int lane = static_cast<int>(threadIdx.x) % warp;
    for (i64 first = begin; first < end; first += 4 * ahead) {
      double u[ahead][4];
      double v[ahead][4];
#pragma unroll
      for (int g = 0; g < ahead; ++g) {
        const i64 k = first + g * 4 + lane % 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          u[g][i] = k < end ? left(i * 8 + lane / 4, k) : 0.0;
          v[g][i] = k < end ? right(k, i * 8 + lane / 4) : 0.0;
        }
      }
#pragma unroll
      for (int g = 0; g < ahead; ++g)
#pragma unroll
        for (int i = 0; i < 4; i += 2)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            mma(u[g][i], u[g][i + 1], v[g][j], sum[i][j], sum[i + 1][j]);
    }
  }
};

/// An entry, zero outside the matrix.
template <class T> __device__ double entry(const Rows<T> &a, i64 row, i64 column) {
  return row < a.rows && column < a.cols ? static_cast<double>(a(row, column)) : 0.0;
}

/// The first of the rows that this warp takes, and how far it is to its next.
struct WarpRows {
  i64 first = (i64{blockIdx.x} * warps + threadIdx.x / warp) * mma_tile;
  i64 step = i64{gridDim.x} * warps * mma_tile;
};

/// to[:, blockIdx.y-th tile of columns] := m p
template <class T>
__global__ void __launch_bounds__(warps *warp)
    multiply_tile(Rows<const T> m, const double *__restrict__ p, Rows<T> to) {
  const WarpRows rows;
  const i64 first_column = i64{blockIdx.y} * mma_tile;
  for (i64 first = rows.first; first < m.rows; first += rows.step) {
    Tile tile;
    tile.add(
        0, m.cols, [&](int i, i64 k) { return entry(m, first + i, k); },
        [&](i64 k, int j) { return first_column + j < to.cols ? p[k * to.cols + first_column + j] : 0.0; });
    __syncwarp(); // `to` may be m
    for_entries(tile.sum, [&](int i, int j, double sum) {
      if (first + i < m.rows && first_column + j < to.cols)
        to(first + i, first_column + j) = static_cast<T>(sum);
    });
  }
}

template <class T> void multiply_rows(Gpu &device, ConstMatrix m, const double *p, Matrix a) {
  const dim3 grid(blocks_for(device, m.rows, i64{warps} * mma_tile),
                  static_cast<unsigned>((a.cols + mma_tile - 1) / mma_tile));
  multiply_tile<<<grid, warps * warp, 0, device.stream()>>>(rows_of<T>(m), p, rows_of<T>(a));
  check_launch("a product with an R x R matrix");
}

// ---- the solve of more columns than solve_narrow.cu takes: a := before + (m - before v) f^T f ----

/// What a solve reads besides rows. Only the device knows whether eigenvalues were dropped.
struct Solve {
  i64 rank;
  const double *__restrict__ v;
  const double *__restrict__ f;
  const double *__restrict__ scaled_f; // for a right-hand side that is not scaled yet
  const SolveRecord *record;
  SolveScales scales;

  __device__ bool full() const { return record->used_eigen != 0; } // else f is a lower triangle
  __device__ bool corrects() const { return scales.before != nullptr && full(); }
  __device__ i64 end_above(i64 first_column) const { return full() ? rank : min(rank, first_column + mma_tile); }
  __device__ i64 begin_below(i64 first_column) const { return full() ? 0 : first_column; }
  __device__ double right(i64 column) const { return scales.right != nullptr ? scales.right[column] : 1; }
  __device__ double v_at(i64 k, i64 column) const { return column < rank ? v[k * rank + column] : 0.0; }
  __device__ double f_at(i64 k, i64 column) const { return column < rank ? f[k * rank + column] : 0.0; }
  __device__ double f_transposed_at(i64 k, i64 column) const { return column < rank ? f[column * rank + k] : 0.0; }
  __device__ double scaled_f_transposed_at(i64 k, i64 column) const {
    return column < rank ? scaled_f[column * rank + k] : 0.0;
  }
  template <class T> __device__ double left(const Rows<T> &m, i64 row, i64 column, double product) const {
    return column < rank ? entry(m, row, column) * right(column) - product : 0.0;
  }
  /// The result, of which `sum` is the part that m says something of.
  template <class T> __device__ T solved(const Rows<T> &a, i64 row, i64 column, double sum, bool corrected) const {
    const double x = corrected ? before(a, row, column) + sum : sum;
    return static_cast<T>(scales.solved != nullptr ? x * scales.solved[column] : x);
  }
  template <class T> __device__ double before(const Rows<T> &a, i64 row, i64 column) const {
    return row < a.rows && column < rank ? static_cast<double>(a(row, column)) * scales.before[column] : 0.0;
  }
};

/// scaled[i, k] := f[i, k] right[k], once: in the product it would be multiplied for every few rows again, by the pipe
/// that the tensor cores share.
__global__ void scale_columns(const double *f, i64 rank, const double *right, double *scaled) {
  for (i64 n = i64{blockIdx.x} * blockDim.x + threadIdx.x; n < rank * rank; n += i64{gridDim.x} * blockDim.x)
    scaled[n] = f[n] * right[n % rank];
}

/// All of it for up to small_rank columns: a warp keeps m f^T of its rows in shared memory.
template <class T> __global__ void __launch_bounds__(warps *warp) solve_whole(Solve solve, Rows<const T> m, Rows<T> a) {
  extern __shared__ double staged[];
  double *own = staged + threadIdx.x / warp * (mma_tile * ld);
  const bool corrects = solve.corrects();
  const auto stage = [&](const Tile(&tile)[tiles], auto &&from) {
    __syncwarp(); // all have read what is there
#pragma unroll
    for (int t = 0; t < tiles; ++t)
      for_entries(tile[t].sum,
                  [&](int i, int j, double sum) { own[i * ld + t * mma_tile + j] = from(i, t * mma_tile + j, sum); });
    __syncwarp();
  };
  const WarpRows rows;
  for (i64 first = rows.first; first < m.rows; first += rows.step) {
    const auto of_m = [&](int i, i64 k) { return entry(m, first + i, k); };
    const auto of_staged = [&](int i, i64 k) { return own[i * ld + k]; };
    if (corrects) {
      Tile product[tiles];
#pragma unroll
      for (int t = 0; t < tiles; ++t)
        product[t].add(
            0, solve.rank, [&](int i, i64 k) { return solve.before(a, first + i, k); },
            [&](i64 k, int j) { return solve.v_at(k, t * mma_tile + j); });
      stage(product, [&](int i, int column, double sum) { return solve.left(m, first + i, column, sum); });
    }
    Tile half[tiles];
#pragma unroll
    for (int t = 0; t < tiles; ++t) {
      if (corrects)
        half[t].add(0, solve.rank, of_staged, [&](i64 k, int j) { return solve.f_transposed_at(k, t * mma_tile + j); });
      else
        half[t].add(0, solve.end_above(t * mma_tile), of_m,
                    [&](i64 k, int j) { return solve.scaled_f_transposed_at(k, t * mma_tile + j); });
    }
    stage(half, [](int, int, double sum) { return sum; });
#pragma unroll
    for (int t = 0; t < tiles; ++t) {
      Tile whole;
      whole.add(solve.begin_below(t * mma_tile), solve.rank, of_staged,
                [&](i64 k, int j) { return solve.f_at(k, t * mma_tile + j); });
      for_entries(whole.sum, [&](int i, int j, double sum) {
        const i64 column = t * mma_tile + j;
        if (first + i < a.rows && column < solve.rank)
          a(first + i, column) = solve.solved(a, first + i, column, sum, corrects);
      });
    }
  }
}

/// Beyond that a solve takes three launches, the first of which has something to do only where eigenvalues were
/// dropped.
template <class T>
__global__ void __launch_bounds__(warps *warp) solve_residual(Solve solve, Rows<const T> m, Rows<T> a, Rows<double> r) {
  if (!solve.corrects())
    return;
  const WarpRows rows;
  const i64 first_column = i64{blockIdx.y} * mma_tile;
  for (i64 first = rows.first; first < m.rows; first += rows.step) {
    Tile tile;
    tile.add(
        0, solve.rank, [&](int i, i64 k) { return solve.before(a, first + i, k); },
        [&](i64 k, int j) { return solve.v_at(k, first_column + j); });
    for_entries(tile.sum, [&](int i, int j, double sum) {
      if (first + i < m.rows && first_column + j < solve.rank)
        r(first + i, first_column + j) = solve.left(m, first + i, first_column + j, sum);
    });
  }
}

template <class T>
__global__ void __launch_bounds__(warps *warp)
    solve_half(Solve solve, Rows<const T> m, Rows<double> r, Rows<double> half) {
  const WarpRows rows;
  const i64 first_column = i64{blockIdx.y} * mma_tile;
  const bool corrects = solve.corrects();
  for (i64 first = rows.first; first < m.rows; first += rows.step) {
    Tile tile;
    tile.add(
        0, solve.end_above(first_column),
        [&](int i, i64 k) { return corrects ? entry(r, first + i, k) : entry(m, first + i, k); },
        [&](i64 k, int j) {
          return corrects ? solve.f_transposed_at(k, first_column + j)
                          : solve.scaled_f_transposed_at(k, first_column + j);
        });
    for_entries(tile.sum, [&](int i, int j, double sum) {
      if (first + i < m.rows && first_column + j < solve.rank)
        half(first + i, first_column + j) = sum;
    });
  }
}

template <class T>
__global__ void __launch_bounds__(warps *warp) solve_rest(Solve solve, Rows<double> half, Rows<T> a) {
  const WarpRows rows;
  const i64 first_column = i64{blockIdx.y} * mma_tile;
  const bool corrects = solve.corrects();
  for (i64 first = rows.first; first < a.rows; first += rows.step) {
    Tile tile;
    tile.add(
        solve.begin_below(first_column), solve.rank, [&](int i, i64 k) { return entry(half, first + i, k); },
        [&](i64 k, int j) { return solve.f_at(k, first_column + j); });
    for_entries(tile.sum, [&](int i, int j, double sum) {
      const i64 column = first_column + j;
      if (first + i < a.rows && column < solve.rank)
        a(first + i, column) = solve.solved(a, first + i, column, sum, corrects);
    });
  }
}

template <class T> void launch_whole(Gpu &device, const Solve &solve, ConstMatrix m, Matrix a) {
  constexpr int bytes = warps * mma_tile * ld * static_cast<int>(sizeof(double));
  allow_shared(solve_whole<T>, bytes);
  solve_whole<<<blocks_for(device, m.rows, i64{warps} * mma_tile), warps * warp, bytes, device.stream()>>>(
      solve, rows_of<T>(m), rows_of<T>(a));
  check_launch("solving for a factor");
}

template <class T> void launch_parts(Gpu &device, const Solve &solve, ConstMatrix m, Matrix a) {
  const i64 most = solve_staged_rows(m.rows, solve.rank);
  const Scratch<double> residual(device, solve.scales.before != nullptr ? most * solve.rank : 0, "rows of a residual");
  const Scratch<double> half(device, most * solve.rank, "rows of a product");
  for (i64 begin = 0; begin < m.rows; begin += most) {
    const i64 end = std::min(begin + most, m.rows);
    const Rows<const T> left = rows_of<T>(m.slice(begin, end));
    const Rows<T> to = rows_of<T>(a.slice(begin, end));
    const Rows<double> r{residual.data(), end - begin, solve.rank, solve.rank};
    const Rows<double> product{half.data(), end - begin, solve.rank, solve.rank};
    const dim3 grid(blocks_for(device, end - begin, i64{warps} * mma_tile),
                    static_cast<unsigned>((solve.rank + mma_tile - 1) / mma_tile));
    if (solve.scales.before != nullptr)
      solve_residual<<<grid, warps * warp, 0, device.stream()>>>(solve, left, to, r);
    solve_half<<<grid, warps * warp, 0, device.stream()>>>(solve, left, r, product);
    solve_rest<<<grid, warps * warp, 0, device.stream()>>>(solve, product, to);
    check_launch("solving for a factor");
  }
}

} // namespace

void CudaBackend::multiply(ConstMatrix m, const double *p, Matrix a) {
  const CurrentDevice current = enter();
  if (m.rows == 0)
    return;
  dispatch(m.type, [&](auto zero) {
    using T = decltype(zero);
    if (m.data != a.data || a.cols <= mma_tile)
      return multiply_rows<T>(device_, m, p, a);
    // Several warps read a row, each for its own columns, so the result is kept apart until all have read.
    const i64 row_bytes = a.cols * size_of(a.type);
    const i64 rows = std::clamp<i64>(staged_bytes / row_bytes, 1, m.rows);
    const Scratch<T> staged(device_, rows * a.cols, "rows of a product");
    for (i64 begin = 0; begin < m.rows; begin += rows) {
      const i64 end = std::min(begin + rows, m.rows);
      const Matrix some{staged.data(), a.type, end - begin, a.cols, a.cols};
      multiply_rows<T>(device_, m.slice(begin, end), p, some);
      check(cudaMemcpy2DAsync(a.slice(begin, end).data, static_cast<std::size_t>(a.ld * size_of(a.type)), some.data,
                              static_cast<std::size_t>(row_bytes), static_cast<std::size_t>(row_bytes),
                              static_cast<std::size_t>(some.rows), cudaMemcpyDeviceToDevice, device_.stream()),
            "copying rows of a product");
    }
  });
}

void CudaBackend::solve_normal(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a) {
  const CurrentDevice current = enter();
  if (m.rows == 0)
    return;
  if (equations.rank <= mma_tile)
    return solve_narrow(device_, equations, m, scales, a);
  const i64 numbers = equations.rank * equations.rank;
  const Scratch<double> scaled(device_, scales.right != nullptr ? numbers : 0, "a scaled factor of normal equations");
  if (scales.right != nullptr) {
    scale_columns<<<blocks_for(device_, numbers, block_threads), block_threads, 0, device_.stream()>>>(
        equations.f, equations.rank, scales.right, scaled.data());
    check_launch("a scaled factor of normal equations");
  }
  const Solve solve{equations.rank,   equations.v, equations.f, scales.right != nullptr ? scaled.data() : equations.f,
                    equations.record, scales};
  dispatch(m.type, [&](auto zero) {
    using T = decltype(zero);
    if (solve.rank <= small_rank)
      launch_whole<T>(device_, solve, m, a);
    else
      launch_parts<T>(device_, solve, m, a);
  });
}

void CudaBackend::solve_and_sum(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a,
                                const ColumnSums &sums) {
  if (equations.rank > mma_tile)
    return Kernels::solve_and_sum(equations, m, scales, a, sums);
  const CurrentDevice current = enter();
  solve_and_sum_narrow(device_, equations, m, scales, a, sums);
}

} // namespace td::kernels::cuda
