// MTTKRP of a dense tensor by matrix products of cuBLAS with Khatri-Rao products in memory (GemmLayout), box by box of
// rows and part by part of the depth, in one order: what is known as the matrix-based way, in bounded workspace.
//
// A row of a factor or of a result is a column of cuBLAS's matrices.
#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/dense_variants.hpp"
#include "kernels/cuda/khatri_rao.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mttkrp.hpp"

namespace td::kernels::cuda {

namespace {

/// to[k, :] := row first + k of the Khatri-Rao product.
template <class T, class G>
__global__ void __launch_bounds__(block_threads)
    multiply_side(const __grid_constant__ DepthModes<T> side, i64 first, i64 rows, G *to) {
  make_khatri_rao(side, first, rows, to);
}

/// Rows and depths of the tensor that are multiplied at a time. Rows follow each other in memory, or do so in runs of
/// one length, whose beginnings are as far from each other.
template <class T> struct Operand {
  const T *values;
  i64 row_step;
  i64 depth_step;
  i64 run;      // rows
  i64 run_step; // elements from a run to the next one
  i64 rows;
  i64 depth;
};

/// to := an operand in a wider type, without gaps, in the order that it has in memory.
template <class T, class G> __global__ void widen(const Operand<T> from, bool rows_first, G *to) {
  const i64 fast = rows_first ? from.rows : from.depth;
  for (i64 n = i64{blockIdx.x} * blockDim.x + threadIdx.x; n < from.rows * from.depth;
       n += i64{gridDim.x} * blockDim.x) {
    const i64 upper = n / fast;
    const i64 row = rows_first ? n - upper * fast : upper;
    const i64 k = rows_first ? upper : n - upper * fast;
    const i64 run = row / from.run;
    to[n] =
        static_cast<G>(from.values[run * from.run_step + (row - run * from.run) * from.row_step + k * from.depth_step]);
  }
}

/// Rows of a Khatri-Rao product, without gaps or as a factor has them.
template <class G> struct Products {
  const G *data;
  i64 ld;
};

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

/// Workspace, one array after the other.
template <class G> struct Workspace {
  char *blas;
  G *widened;
  G *products;
  G *sums;
  G *factors;
  double *parts;

  Workspace(char *memory, const GemmLayout &l, i64 rank) : blas(memory) {
    widened = reinterpret_cast<G *>(memory + gemm_blas_bytes);
    const auto behind = [](G *array, double numbers) { return array + static_cast<i64>(gemm_rounded(numbers)); };
    products = behind(widened, l.widened());
    sums = behind(products, l.products(rank));
    factors = behind(sums, l.sums(rank));
    parts = reinterpret_cast<double *>(behind(factors, l.factors(rank)));
  }
};

/// One MTTKRP, from T to G.
template <class T, class G> class Multiplication {
public:
  Multiplication(Gpu &device, const DenseView &x, const MttkrpArgs &args, const GemmLayout &l, char *memory)
      : device_(device), args_(args), l_(l), values_(static_cast<const T *>(x.values)), rank_(args.out.cols),
        memory_(memory, l, rank_) {
    const int order = static_cast<int>(x.dims.size());
    depth_ = side_of(x, l.leading ? l.cut : 0, l.leading ? order : l.cut, gemm_ld(rank_));
    i64 step = l.leading ? 1 : l.leading_size; // of the tensor, from row to row
    row_step_ = step;
    G *widened = memory_.factors;
    for (std::size_t m = 0; m < l.row_dims.size(); ++m) {
      const std::size_t mode = m + static_cast<std::size_t>(l.leading ? 0 : l.cut);
      steps_.push_back(step);
      step *= x.dims[mode];
      rows_.push_back(args.factors[mode]);
      if (l.widens && m != l.place) {
        const i64 n = l.row_dims[m];
        make_products(side_of(x, static_cast<int>(mode), static_cast<int>(mode) + 1, rank_), {0, n}, widened);
        rows_.back() = {widened, l.type, n, rank_, rank_};
        widened += n * rank_;
      }
    }
  }

  void run() {
    const cublasHandle_t blas = device_.blas();
    check(cublasSetWorkspace(blas, memory_.blas, static_cast<std::size_t>(gemm_blas_bytes)), "starting cuBLAS");
    GemmBox box(l_);
    bool made = false;
    do {
      for (i64 k = 0; k < l_.depth; k += l_.depth_part) {
        const Range depth{k, std::min(k + l_.depth_part, l_.depth)};
        const bool whole = depth.size() == l_.depth;
        if (l_.makes_products && !(made && whole))
          make_products(depth_, depth, memory_.products);
        made = true;
        multiply_box(blas, box, depth);
      }
      if (!l_.direct)
        add_box(box);
    } while (box.next(l_));
  }

private:
  DepthModes<T> side_of(const DenseView &x, int begin, int end, i64 ld) const {
    DepthModes<T> side{0, rank_, ld, {}};
    for (int m = begin; m < end; ++m) {
      const ConstMatrix &factor = args_.factors[static_cast<std::size_t>(m)];
      side.modes[side.count++] = {static_cast<const T *>(factor.data), factor.ld, x.dims[static_cast<std::size_t>(m)]};
    }
    return side;
  }

  void make_products(const DepthModes<T> &side, Range rows, G *to) {
    multiply_side<<<khatri_rao_blocks(device_, rows.size(), side.ld), block_threads, 0, device_.stream()>>>(
        side, rows.begin, rows.size(), to);
    check_launch("a Khatri-Rao product");
  }
  Products<G> products(Range depth) const {
    if constexpr (std::is_same_v<T, G>)
      if (!l_.makes_products)
        return {depth_.modes[0].data + depth.begin * depth_.modes[0].ld, depth_.modes[0].ld};
    return {memory_.products, gemm_ld(rank_)};
  }

  /// Where rows that are not all of the mode's lie between others, each run of rows is the modes' below it.
  Operand<T> operand_of(const GemmBox &box, Range depth) const {
    const i64 depth_step = l_.leading ? l_.leading_size : 1;
    Operand<T> operand{
        values_ + depth.begin * depth_step, row_step_, depth_step, box.rows(), 0, box.rows(), depth.size()};
    i64 below = 1;
    bool gaps = false;
    for (std::size_t m = 0; m < box.dims.size(); ++m) {
      const bool here = m == l_.place;
      operand.values += (box.first[m] + (here ? args_.rows.begin : 0)) * steps_[m];
      below *= m <= l_.place ? box.dims[m] : 1;
      gaps |= m > l_.place && box.dims[m] > 1;
    }
    if (gaps && l_.row_dims[l_.place] < l_.dim) {
      operand.run = below;
      operand.run_step = steps_[l_.place] * l_.dim;
    }
    return operand;
  }

  void multiply_box(cublasHandle_t blas, const GemmBox &box, Range depth) {
    const Operand<T> operand = operand_of(box, depth);
    Gemm<G> g{l_.leading, rank_, operand.run, operand.depth, products(depth), nullptr, 0, 0, 0, nullptr, 0, 0, 1};
    if constexpr (std::is_same_v<T, G>) {
      g.b = operand.values;
      g.ld_b = l_.leading_size;
      g.step_b = operand.run_step;
      g.count = operand.rows / operand.run;
    } else {
      widen<<<blocks_for(device_, operand.rows * operand.depth, block_threads), block_threads, 0, device_.stream()>>>(
          operand, l_.leading, memory_.widened);
      check_launch("widening a dense tensor");
      g.b = memory_.widened;
      g.ld_b = l_.leading ? operand.rows : operand.depth;
      g.columns = operand.rows;
    }
    g.c = l_.direct ? args_.out.row<G>(args_.rows.begin + box.first[0]) : memory_.sums;
    g.ld_c = l_.direct ? args_.out.ld : gemm_ld(rank_);
    g.step_c = operand.run * g.ld_c;
    g.beta = depth.begin > 0 || (l_.direct && args_.add) ? 1 : 0;
    multiply(blas, g);
  }

  /// What cuBLAS has left of a box is a partial product.
  void add_box(const GemmBox &box) {
    const std::size_t place = l_.place;
    std::vector<ConstMatrix> factors;
    for (std::size_t m = 0; m < box.dims.size(); ++m)
      factors.push_back(m == place ? rows_[m] : rows_[m].slice(box.first[m], box.first[m] + box.dims[m]));
    const i64 first = args_.rows.begin + box.first[place];
    const i64 rows = box.rows();
    const CellsView cells{box.dims, {memory_.sums, l_.type, rows, rank_, gemm_ld(rank_)}};
    MttkrpArgs args{static_cast<int>(place),
                    factors,
                    args_.out.slice(first, first + box.dims[place]),
                    {0, box.dims[place]},
                    {0, rows}};
    args.add = args_.add || box.comes_later(place);
    mttkrp_cells(device_, cells, args, memory_.parts);
  }

  Gpu &device_;
  const MttkrpArgs &args_;
  const GemmLayout &l_;
  const T *values_;
  i64 rank_;
  Workspace<G> memory_;
  DepthModes<T> depth_{};
  i64 row_step_ = 1;
  std::vector<i64> steps_;        // of the tensor, from an index of each row mode to the next
  std::vector<ConstMatrix> rows_; // factors of the row modes
};

} // namespace

bool mttkrp_gemm(Gpu &device, const DenseView &x, const MttkrpArgs &args, bool in_free_memory) {
  if (args.rows.size() == 0)
    return true;
  const i64 rank = args.out.cols;
  const GemmLayout l = gemm_layout(x.dims, args.mode, args.rows.size(), rank, x.type, args.out.type, device.chip());
  const auto bytes = static_cast<i64>(l.bytes(rank));
  constexpr const char *what = "Khatri-Rao products of a dense MTTKRP, of which dense_kernel = fused needs less";
  const Scratch<char> memory(device, in_free_memory ? device.memory().try_allocate(bytes, what, device.stream())
                                                    : device.allocate(bytes, what));
  if (memory.data() == nullptr)
    return false;
  dispatch_mixed(x.type, args.out.type, [&](auto element, auto sum) {
    Multiplication<decltype(element), decltype(sum)>(device, x, args, l, memory.data()).run();
  });
  return true;
}

} // namespace td::kernels::cuda
