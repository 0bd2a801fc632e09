// A factor of up to 32 columns, whose rows are passed over once: solved, written, and summed to a Gram matrix. A warp
// takes a few rows at a time, and while it works on them its next ones come to shared memory.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/solve.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int warps = narrow_warps;
constexpr int rows_held = narrow_rows;
constexpr int ld = solve_ld(1);
constexpr int tile_numbers = rows_held * ld;
constexpr int factor_numbers = mma_tile * ld;
using Held = RowEntries<rows_held>;

/// Where a matrix is not zero, if its shape says that; the diagonal included.
enum class Nonzeros { all, above, below };

/// sum += left right over k below depth; left(row, k) is 0 from there on, right(k, column) is zero as `where` says.
template <Nonzeros where, class Left, class Right>
__device__ void multiply(Held &sum, int depth, Left &&left, Right &&right) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
#pragma unroll
  for (int k = 0; k < mma_tile; k += 4) {
    if (k >= depth)
      break;
    double u[rows_held / 8];
#pragma unroll
    for (int i = 0; i < rows_held / 8; ++i)
      u[i] = left(i * 8 + lane / 4, k + lane % 4);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if ((where == Nonzeros::above && k >= 8 * (j + 1)) || (where == Nonzeros::below && k + 4 <= 8 * j))
        continue;
      const double v = right(k + lane % 4, j * 8 + lane / 4);
#pragma unroll
      for (int i = 0; i < rows_held / 8; i += 2)
        mma(u[i], u[i + 1], v, sum[i][j], sum[i + 1][j]);
    }
  }
}

/// sum += the upper triangle of a^T a, of a tile's rows: an entry of a^T as the left operand is the same as the right
/// one, so each is read once.
template <class A> __device__ void add_gram(TileEntries &sum, A &&a) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
#pragma unroll
  for (int row = 0; row < rows_held; row += 4) {
    double x[4];
#pragma unroll
    for (int c = 0; c < 4; ++c)
      x[c] = a(row + lane % 4, c * 8 + lane / 4);
#pragma unroll
    for (int i = 0; i < 4; i += 2)
#pragma unroll
      for (int j = i; j < 4; ++j)
        mma(x[i], x[i + 1], x[j], sum[i][j], sum[i + 1][j]);
  }
}

/// What a solve reads besides rows. Only the device knows whether eigenvalues were dropped.
struct Solve {
  const double *v;
  const double *f;
  const SolveRecord *record;
  SolveScales scales;

  __device__ bool full() const { return record->used_eigen != 0; } // else f is a lower triangle
  __device__ bool corrects() const { return scales.before != nullptr && full(); }
};

/// f^T with its rows scaled as the right-hand side is, and f with its columns scaled as the result is. Where dropped
/// eigenvalues are corrected for, the right-hand side is scaled before.
__device__ void stage_factor(const Solve &solve, int rank, double *transposed, double *as_it_is) {
  const int j = static_cast<int>(threadIdx.x) % warp;
  const int first = static_cast<int>(threadIdx.x) / warp;
  const int at = min(j, rank - 1); // no load depends on whether the entry is there: all are under way together
  constexpr int each = (mma_tile + warps - 1) / warps;
  double entry[each];
#pragma unroll
  for (int i = 0; i < each; ++i)
    entry[i] = solve.f[min(first + i * warps, rank - 1) * rank + at];
  const double right = solve.scales.right != nullptr ? solve.scales.right[at] : 1;
  const double solved = solve.scales.solved != nullptr ? solve.scales.solved[at] : 1;
  const double before = solve.corrects() ? 1 : right;
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const int k = first + i * warps;
    if (k >= mma_tile)
      break;
    const bool inside = k < rank && j < rank;
    transposed[j * ld + k] = inside ? entry[i] * before : 0;
    as_it_is[k * ld + j] = inside ? entry[i] * solved : 0;
  }
}

__device__ double larger(double a, double b) { return b > a || isnan(b) ? b : a; } // a NaN stays

/// A matrix f with f^T f = v^+ in shared memory, as stage_factor leaves it.
struct StagedFactor {
  const double *transposed, *as_it_is;
  const bool full, corrects;

  __device__ double first(int k, int column) const { return transposed[k * ld + column]; }
  __device__ double second(int k, int column) const { return as_it_is[k * ld + column]; }
};

/// Rows in a warp's shared memory: first in T, as they were fetched, then in f64.
template <class T> struct RowTile {
  double *at;
  int rank;

  __device__ double fetched(int i, int k) const {
    return k < rank ? static_cast<double>(reinterpret_cast<const T *>(at)[i * ld + k]) : 0.0;
  }
  __device__ double operator()(int i, int k) const { return k < rank ? at[i * ld + k] : 0.0; }
  __device__ double any(int i, int column) const { return at[i * ld + column]; }
  __device__ void put(Held &entries) const {
    __syncwarp(); // all have read what is there
    for_entries(entries, [&](int i, int column, double x) { at[i * ld + column] = x; });
    __syncwarp();
  }
};

/// Begins to copy the rows of m from `first` on, if there are any.
template <class T> __device__ void fetch(double *to, const Rows<const T> &m, int rank, i64 first) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  if (first < m.rows && lane < rank)
#pragma unroll 8
    for (int i = 0; i < rows_held; ++i)
      copy_or_zero<sizeof(T)>(reinterpret_cast<T *>(to) + i * ld + lane, &m(min(first + i, m.rows - 1), lane),
                              first + i < m.rows ? static_cast<int>(sizeof(T)) : 0);
  commit_copies();
}

/// tile := the solution for the rows of the right-hand side that it holds, those of `a` from `first` on, as `a` will
/// store them.
template <class T>
__device__ void solve_tile(const Solve &solve, const StagedFactor &factor, const RowTile<T> &tile, const Rows<T> &a,
                           i64 first) {
  const int rank = tile.rank;
  const auto before = [&](int i, int column) {
    return first + i < a.rows && column < rank ? static_cast<double>(a(first + i, column)) * solve.scales.before[column]
                                               : 0.0;
  };
  const auto fetched = [&](int i, int k) { return tile.fetched(i, k); };
  const auto first_factor = [&](int k, int column) { return factor.first(k, column); };
  const auto second_factor = [&](int k, int column) { return factor.second(k, column); };
  Held half = {};
  if (factor.corrects) {
    Held left = {};
    multiply<Nonzeros::all>(left, rank, before, [&](int k, int column) {
      return k < rank && column < rank ? solve.v[k * rank + column] : 0.0;
    });
    for_entries(left, [&](int i, int column, double &x) {
      const double scale = solve.scales.right != nullptr && column < rank ? solve.scales.right[column] : 1;
      x = tile.fetched(i, column) * scale - x;
    });
    tile.put(left);
    multiply<Nonzeros::all>(half, rank, tile, first_factor);
  } else if (factor.full)
    multiply<Nonzeros::all>(half, rank, fetched, first_factor);
  else
    multiply<Nonzeros::above>(half, rank, fetched, first_factor);
  tile.put(half);
  Held whole = {};
  if (factor.full)
    multiply<Nonzeros::all>(whole, rank, tile, second_factor);
  else
    multiply<Nonzeros::below>(whole, rank, tile, second_factor);
  for_entries(whole, [&](int i, int column, double &x) {
    if (factor.corrects && column < rank)
      x += before(i, column) * (solve.scales.solved != nullptr ? solve.scales.solved[column] : 1);
    x = static_cast<double>(static_cast<T>(x)); // sums are over what is stored
  });
  tile.put(whole);
}

/// What a lane sums over rows of its column.
struct LaneSums {
  unsigned long long largest = 0; // the bits of the largest magnitude, among which those of a NaN come last
  double dots = 0;
};

/// Writes a tile's rows, those of `a` from `first` on, whole, and adds to the sums over them.
template <class T>
__device__ void write_rows(const RowTile<T> &tile, const Rows<const T> &m, const Rows<T> &a, i64 first, bool inner,
                           LaneSums &sums) {
  constexpr int ahead = 8;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  if (lane >= tile.rank)
    return;
#pragma unroll 1
  for (int begin = 0; begin < rows_held; begin += ahead) {
    double right[ahead];
    if (inner)
#pragma unroll
      for (int i = 0; i < ahead; ++i)
        right[i] = static_cast<double>(m(min(first + begin + i, m.rows - 1), lane));
#pragma unroll
    for (int i = 0; i < ahead; ++i)
      if (first + begin + i < a.rows) {
        const double x = tile.any(begin + i, lane);
        a(first + begin + i, lane) = static_cast<T>(x);
        sums.largest = max(sums.largest, static_cast<unsigned long long>(__double_as_longlong(fabs(x))));
        if (inner)
          sums.dots = fma(right[i], x, sums.dots);
      }
  }
}

/// part := the block's sums; `staged` is shared memory that is no longer needed.
__device__ void sum_over_warps(TileEntries &gram, const LaneSums &of_lane, double *staged, double *part) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int own_warp = static_cast<int>(threadIdx.x) / warp;
  const double largest = __longlong_as_double(static_cast<long long>(of_lane.largest));
  __syncthreads();
  for (int w = 0; w < warps; ++w) { // one warp after the other, so that the order of sums is fixed
    if (own_warp == w) {
      for_entries(gram, [&](int i, int column, double x) {
        double &sum = staged[i * mma_tile + column];
        sum = w == 0 ? x : sum + x;
      });
      double *const others = staged + mma_tile * mma_tile + lane;
      others[0] = w == 0 ? largest : larger(others[0], largest);
      others[mma_tile] = w == 0 ? of_lane.dots : others[mma_tile] + of_lane.dots;
    }
    __syncthreads();
  }
  for (int n = static_cast<int>(threadIdx.x); n < narrow_part; n += warps * warp)
    part[n] = staged[n];
}

/// Solves for rows of a, sums over them, or both; without solving, m is the matrix that is summed. part[block] := the
/// sums of the block's rows: a Gram matrix's upper triangle, then a row of largest magnitudes and one of inner
/// products.
template <class T, bool Solves, bool Sums>
__global__ void __launch_bounds__(warps *warp, narrow_blocks)
    pass_over_rows(Solve solve, Rows<const T> m, Rows<T> a, bool inner, double *part) {
  extern __shared__ double staged[];
  const int own_warp = static_cast<int>(threadIdx.x) / warp;
  double *const own = staged + (Solves ? 2 * factor_numbers : 0) + 2 * own_warp * tile_numbers; // two tiles, turn about
  const int rank = static_cast<int>(m.cols);
  const i64 step = i64{gridDim.x} * warps * rows_held;
  i64 first = (i64{blockIdx.x} * warps + own_warp) * rows_held;
  fetch(own, m, rank, first);
  if constexpr (Solves) {
    stage_factor(solve, rank, staged, staged + factor_numbers);
    __syncthreads();
  }
  const StagedFactor factor{staged, staged + factor_numbers, Solves && solve.full(), Solves && solve.corrects()};
  TileEntries gram = {};
  LaneSums sums;
  for (int now = 0; first < m.rows; first += step, now ^= 1) {
    const RowTile<T> tile{own + now * tile_numbers, rank};
    __syncwarp(); // all have read what the other tile held
    fetch(own + (now ^ 1) * tile_numbers, m, rank, first + step);
    await_copies_but<1>();
    __syncwarp();
    if constexpr (Solves) {
      solve_tile(solve, factor, tile, a, first);
      write_rows(tile, m, a, first, inner, sums);
      if constexpr (Sums)
        add_gram(gram, [&](int i, int column) { return tile.any(i, column); });
    } else
      add_gram(gram, [&](int i, int column) { return tile.fetched(i, column); });
  }
  if constexpr (Sums)
    sum_over_warps(gram, sums, staged, part + blockIdx.x * narrow_part);
}

/// Adds up the parts, a row a block of 32 x 32 threads. Where columns are finished, each block sums all their largest
/// magnitudes besides, which decide what its row is divided by: another launch would take longer.
template <bool Finishes>
__global__ void sum_over_parts(const double *part, i64 blocks, int columns, const double *solved, ColumnSums out) {
  __shared__ double sums[2][mma_tile][mma_tile + 1];
  __shared__ double scales[mma_tile];
  const int row = static_cast<int>(blockIdx.x);
  const int column = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const bool divides = Finishes && row < mma_tile;
  const auto join = [](int of, double a, double b) { return of == mma_tile ? larger(a, b) : a + b; };
  const auto begin = [&](int of) {
    double sum = 0;
#pragma unroll 4
    for (i64 b = y; b < blocks; b += mma_tile)
      sum = join(of, sum, part[b * narrow_part + of * mma_tile + column]);
    return sum;
  };
  sums[0][y][column] = begin(row);
  if (divides)
    sums[1][y][column] = begin(mma_tile);
  __syncthreads();
  double sum = 0;
  if (y == 0 || (y == 1 && divides))
    for (int k = 0; k < min(static_cast<int>(blocks), mma_tile); ++k)
      sum = join(y == 0 ? row : mma_tile, sum, sums[y][k][column]);
  if (divides) {
    if (y == 1 && column < columns)
      scales[column] = Finished(sum, solved[column]).scale;
    __syncthreads();
  }
  if (y != 0 || column >= columns)
    return;
  if (row > mma_tile)
    out.inner[column] = sum;
  else if (row == mma_tile) {
    out.largest[column] = sum;
    if constexpr (Finishes) {
      const Finished finished(sum, solved[column]);
      out.weights[column] = finished.weight;
      out.scales[column] = finished.scale;
    }
  } else if (row <= column)
    out.gram[row * columns + column] = out.gram[column * columns + row] =
        divides ? sum / scales[row] / scales[column] : sum;
}

template <class T, bool Solves, bool Sums>
void pass(Gpu &device, const Solve &solve, ConstMatrix m, Matrix a, bool inner, double *part) {
  constexpr int numbers = 2 * warps * tile_numbers + (Solves ? 2 * factor_numbers : 0);
  constexpr int bytes = numbers * static_cast<int>(sizeof(double));
  allow_shared(pass_over_rows<T, Solves, Sums>, bytes);
  pass_over_rows<T, Solves, Sums>
      <<<static_cast<unsigned>(narrow_grid(m.rows, device.multiprocessors())), warps * warp, bytes, device.stream()>>>(
          solve, rows_of<T>(m), rows_of<T>(a), inner, part);
  check_launch(Solves ? "solving for a factor" : "a Gram matrix");
}

template <bool Solves> void pass_and_sum(Gpu &device, const Solve &solve, ConstMatrix m, Matrix a, ColumnSums out) {
  const i64 blocks = narrow_grid(m.rows, device.multiprocessors());
  const Scratch<double> part(device, blocks * narrow_part, "parts of sums over rows");
  dispatch(m.type, [&](auto zero) {
    pass<decltype(zero), Solves, true>(device, solve, m, a, out.inner != nullptr, part.data());
  });
  const int rows = mma_tile + (out.largest != nullptr ? 1 : 0) + (out.inner != nullptr ? 1 : 0);
  const auto sum = out.weights != nullptr ? sum_over_parts<true> : sum_over_parts<false>;
  sum<<<static_cast<unsigned>(rows), dim3(mma_tile, mma_tile), 0, device.stream()>>>(
      part.data(), blocks, static_cast<int>(m.cols), solve.scales.solved, out);
  check_launch("sums over rows");
}

Solve solve_of(const NormalEquations &equations, const SolveScales &scales) {
  return {equations.v, equations.f, equations.record, scales};
}

} // namespace

void solve_narrow(Gpu &device, const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a) {
  dispatch(m.type, [&](auto zero) {
    pass<decltype(zero), true, false>(device, solve_of(equations, scales), m, a, false, nullptr);
  });
}

void gram_narrow(Gpu &device, ConstMatrix a, double *g) {
  pass_and_sum<false>(device, {}, a, {nullptr, a.type, 0, a.cols, a.cols}, {g});
}

void solve_and_sum_narrow(Gpu &device, const NormalEquations &equations, ConstMatrix m, const SolveScales &scales,
                          Matrix a, const ColumnSums &sums) {
  pass_and_sum<true>(device, solve_of(equations, scales), m, a, sums);
}

} // namespace td::kernels::cuda
