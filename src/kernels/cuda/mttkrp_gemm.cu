// MTTKRP of a dense tensor by a matrix product of cuBLAS with a Khatri-Rao product in memory (GemmLayout): what is
// known as the matrix-based way, for comparison with the others. Its workspace grows with the product of dims.
//
// A row of a factor or of a result is a column of cuBLAS's matrices.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/dense_variants.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mttkrp.hpp"

namespace td::kernels::cuda {

namespace {

constexpr int block_warps = block_threads / warp;

template <class T> struct Side {
  int modes = 0;
  i64 rank = 0;
  struct Mode {
    const T *data;
    i64 ld;
    i64 dim;
  } mode[max_order - 1];
};

/// to[k, :] := row k of the Khatri-Rao product.
template <class T, class G>
__global__ void __launch_bounds__(block_threads) multiply_side(const __grid_constant__ Side<T> side, i64 rows, G *to) {
  const i64 step = i64{gridDim.x} * block_warps;
  for (i64 k = i64{blockIdx.x} * block_warps + threadIdx.x / warp; k < rows; k += step)
    for (i64 r = threadIdx.x % warp; r < side.rank; r += warp) {
      double product = 1;
      i64 rest = k;
      for (int m = 0; m < side.modes; ++m) {
        const auto &mode = side.mode[m];
        const i64 upper = rest / mode.dim;
        product *= static_cast<double>(mode.data[(rest - upper * mode.dim) * mode.ld + r]);
        rest = upper;
      }
      to[k * side.rank + r] = static_cast<G>(product);
    }
}

/// to := the slices of the rows asked for, in a wider type, without gaps.
template <class T, class G>
__global__ void widen(const T *values, i64 left, i64 dim, i64 first, i64 rows, i64 size, G *to) {
  for (i64 n = i64{blockIdx.x} * blockDim.x + threadIdx.x; n < size; n += i64{gridDim.x} * blockDim.x) {
    const i64 upper = n / left;
    const i64 right = upper / rows;
    const i64 row = first + upper - right * rows;
    to[n] = static_cast<G>(values[n - upper * left + left * (row + dim * right)]);
  }
}

/// What cuBLAS has summed over one side, and the Khatri-Rao product of the other one.
template <class G> struct Rest {
  const G *products; // of row i and the other side's k-th combination: row i * row_step + k * step
  i64 row_step;
  i64 step;
  const G *side;
  i64 side_ld;
  i64 count;
};

/// out := the sums over the other side, or grows by them. A block takes 32 columns of a row, each warp a part of the
/// sum; parts are added in order.
template <class G>
__global__ void __launch_bounds__(block_threads) sum_rest(const Rest<G> rest, Rows<G> out, bool add) {
  __shared__ double sums[block_warps][warp];
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int part = static_cast<int>(threadIdx.x) / warp;
  const i64 column_tiles = (out.cols + warp - 1) / warp;
  for (i64 n = blockIdx.x; n < out.rows * column_tiles; n += gridDim.x) {
    const i64 i = n / column_tiles;
    const i64 r = (n - i * column_tiles) * warp + lane;
    double sum = 0;
    if (r < out.cols)
#pragma unroll 4
      for (i64 k = part; k < rest.count; k += block_warps)
        sum += static_cast<double>(rest.products[(i * rest.row_step + k * rest.step) * out.cols + r]) *
               static_cast<double>(rest.side[k * rest.side_ld + r]);
    sums[part][lane] = sum;
    __syncthreads();
    if (part == 0 && r < out.cols) {
      for (int p = 1; p < block_warps; ++p)
        sum += sums[p][lane];
      out(i, r) = static_cast<G>(add ? static_cast<double>(out(i, r)) + sum : sum);
    }
    __syncthreads();
  }
}

template <class T> Side<T> side_of(const DenseView &x, const MttkrpArgs &args, int begin, int end) {
  Side<T> side;
  side.rank = args.out.cols;
  for (int m = begin; m < end; ++m) {
    const auto at = static_cast<std::size_t>(m);
    side.mode[side.modes++] = {static_cast<const T *>(args.factors[at].data), args.factors[at].ld, x.dims[at]};
  }
  return side;
}

/// Rows of a Khatri-Rao product, without gaps or as a factor has them.
template <class G> struct Products {
  const G *data;
  i64 ld;
};

/// Made in `memory`, or the one mode's factor.
template <class T, class G> Products<G> products_of(Gpu &device, const Side<T> &side, i64 rows, bool made, G *memory) {
  if constexpr (std::is_same_v<T, G>)
    if (!made)
      return {side.mode[0].data, side.mode[0].ld};
  multiply_side<<<blocks_for(device, rows, block_warps), block_threads, 0, device.stream()>>>(side, rows, memory);
  check_launch("a Khatri-Rao product");
  return {memory, side.rank};
}

/// c := a b, or a b^T if b is transposed, plus beta c, in `count` products, each so many numbers behind the one before.
/// The factors' columns are c's rows, of which there are `rank`.
template <class G> struct Gemm {
  bool transposed;
  i64 rank, columns, depth;
  Products<G> a;
  const G *b;
  i64 ld_b, step_b;
  G beta;
  G *c;
  i64 ld_c, step_c, count;
};

// One product is no batch of one: only then cuBLAS may divide a long sum between multiprocessors.
template <class G> void multiply(cublasHandle_t blas, const Gemm<G> &g) {
  const G one = 1;
  const cublasOperation_t b_as = g.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const auto run = [&](auto product, auto batch) {
    check(g.count == 1 ? product(blas, CUBLAS_OP_N, b_as, g.rank, g.columns, g.depth, &one, g.a.data, g.a.ld, g.b,
                                 g.ld_b, &g.beta, g.c, g.ld_c)
                       : batch(blas, CUBLAS_OP_N, b_as, g.rank, g.columns, g.depth, &one, g.a.data, g.a.ld, 0, g.b,
                               g.ld_b, g.step_b, &g.beta, g.c, g.ld_c, g.step_c, g.count),
          "a matrix product of cuBLAS");
  };
  if constexpr (std::is_same_v<G, float>)
    run(cublasSgemm_64, cublasSgemmStridedBatched_64);
  else
    run(cublasDgemm_64, cublasDgemmStridedBatched_64);
}

/// The tensor that is multiplied: the whole one, of whose mode rows from `first` on are asked for, or a copy of these.
template <class G> struct Slices {
  const G *values;
  i64 dim;
  i64 first;
};

template <class G>
Gemm<G> gemm_of(const GemmLayout &l, const Slices<G> &x, const Products<G> &depth, i64 rank, G beta, G *to, i64 ld) {
  const G *b = x.values + l.left * x.first;
  if (l.right_first) // the combinations of left side and mode are a matrix's rows, which follow each other
    return {true, rank, l.left * l.rows, l.right, depth, b, l.left * x.dim, 0, beta, to, ld, 0, 1};
  const i64 rows = l.rows == x.dim ? l.rows * l.right : l.rows; // all at once where none lies between them
  return {false,
          rank,
          rows,
          l.left,
          depth,
          b,
          l.left,
          l.left * x.dim,
          beta,
          to,
          ld,
          l.rows * ld,
          l.rows == x.dim ? 1 : l.right};
}

template <class T, class G> void run(Gpu &device, const DenseView &x, const MttkrpArgs &args, const GemmLayout &l) {
  const i64 rank = args.out.cols;
  constexpr const char *what = "Khatri-Rao products of a dense MTTKRP, of which dense_kernel = fused needs few";
  const Scratch<char> workspace(device, gemm_blas_bytes, "cuBLAS");
  const Scratch<G> widened(device, static_cast<i64>(l.widened()), "rows of a dense tensor in f64");
  const Scratch<G> depth_memory(device, static_cast<i64>(l.depth_products(rank)), what);
  const Scratch<G> rest_memory(device, static_cast<i64>(l.rest_products(rank)), what);
  const Scratch<G> products(device, static_cast<i64>(l.products(rank)), what);

  Slices<G> slices{nullptr, l.dim, args.rows.begin};
  if constexpr (std::is_same_v<T, G>) {
    slices.values = static_cast<const T *>(x.values);
  } else {
    const i64 size = l.left * l.rows * l.right;
    widen<<<blocks_for(device, size, block_threads), block_threads, 0, device.stream()>>>(
        static_cast<const T *>(x.values), l.left, l.dim, args.rows.begin, l.rows, size, widened.data());
    check_launch("widening a dense tensor");
    slices = {widened.data(), l.rows, 0};
  }
  const int order = static_cast<int>(x.dims.size());
  const Side<T> left = side_of<T>(x, args, 0, args.mode);
  const Side<T> right = side_of<T>(x, args, args.mode + 1, order);
  const Products<G> depth =
      products_of(device, l.right_first ? right : left, l.depth(), l.makes_depth, depth_memory.data());

  const Rows<G> out = rows_of<G>(args.out.slice(args.rows.begin, args.rows.end));
  const cublasHandle_t blas = device.blas();
  check(cublasSetWorkspace(blas, workspace.data(), static_cast<std::size_t>(gemm_blas_bytes)), "starting cuBLAS");
  if (l.direct)
    return multiply(blas, gemm_of<G>(l, slices, depth, rank, args.add ? 1 : 0, out.data, out.ld));
  multiply(blas, gemm_of<G>(l, slices, depth, rank, 0, products.data(), rank));
  const Products<G> side =
      products_of(device, l.right_first ? left : right, l.rest(), l.makes_rest, rest_memory.data());
  const Rest<G> rest{products.data(), l.right_first ? l.left : 1, l.right_first ? 1 : l.rows, side.data, side.ld,
                     l.rest()};
  sum_rest<<<blocks_for(device, l.rows * ((rank + warp - 1) / warp), 1), block_threads, 0, device.stream()>>>(rest, out,
                                                                                                              args.add);
  check_launch("a dense MTTKRP");
}

} // namespace

void mttkrp_gemm(Gpu &device, const DenseView &x, const MttkrpArgs &args) {
  const GemmLayout l = gemm_layout(x.dims, args.mode, args.rows.size(), x.type, args.out.type);
  dispatch_mixed(x.type, args.out.type,
                 [&](auto element, auto sum) { run<decltype(element), decltype(sum)>(device, x, args, l); });
}

} // namespace td::kernels::cuda
