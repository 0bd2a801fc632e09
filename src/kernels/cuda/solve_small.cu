// The factor of a small R x R matrix by one block, which decides for itself whether it needs the eigenvalues: nothing
// is asked by the host.
#include "kernels/cuda/solve.cuh"

namespace td::kernels::cuda {

namespace {

constexpr int side = warp;
constexpr int most_sweeps = 40;        // Jacobi's method takes 6 to 10
constexpr double negligible = 0x1p-55; // beside entries of magnitude 1 to 2

/// A block of 32 x Warps threads for matrices of up to Rows rows: a thread holds the entries (y + Warps u, x + 32 w).
/// Each row that is eliminated takes a barrier, which few warps pass sooner.
template <int Rows, int Warps> struct Shape {
  static constexpr int rows = Rows, warps = Warps, down = Rows / Warps, across = Rows / side;
};
using Narrow = Shape<side, 8>;
using Wide = Shape<static_cast<int>(small_rank), side>;

template <class S> struct Entries { double at[S::down][S::across]; };

template <class S, class F> __device__ void for_entries(int n, F &&f) {
#pragma unroll
  for (int u = 0; u < S::down; ++u)
#pragma unroll
    for (int w = 0; w < S::across; ++w) {
      const int i = static_cast<int>(threadIdx.y) + S::warps * u;
      const int j = static_cast<int>(threadIdx.x) + side * w;
      if (i < n && j < n)
        f(i, j, u, w);
    }
}

struct Largest {
  __device__ static double join(double a, double b) { return fmax(a, b); }
};
struct Total {
  __device__ static double join(double a, double b) { return a + b; }
};

/// Combines a number of each lane of a warp; all lanes get the result.
template <class Op> __device__ double over_warp(double x) {
  for (int step = warp / 2; step > 0; step /= 2)
    x = Op::join(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/// The largest of the block's numbers, in all threads.
template <class S> __device__ double largest_of_block(double x) {
  __shared__ double of_warp[S::warps];
  x = over_warp<Largest>(x);
  __syncthreads();
  if (threadIdx.x == 0)
    of_warp[threadIdx.y] = x;
  __syncthreads();
  return over_warp<Largest>(of_warp[threadIdx.x % S::warps]);
}

/// The largest sum of magnitudes in a row of a symmetric matrix.
template <class S> __device__ __forceinline__ double norm_of(const Entries<S> &a) {
  double largest = 0;
#pragma unroll
  for (int u = 0; u < S::down; ++u) { // a warp has whole rows
    double sum = 0;
#pragma unroll
    for (int w = 0; w < S::across; ++w)
      sum += fabs(a.at[u][w]);
    largest = fmax(largest, over_warp<Total>(sum));
  }
  return largest_of_block<S>(largest);
}

/// a := the inverse of a's lower triangle L, a = L L^T, zero above it. Elimination without pivoting: what it does to
/// the matrix it does to the identity as well, whose rows stand where the matrix has become zero. False if a pivot is
/// not positive. Nothing branches on the way: loads behind branches would wait for each other.
template <class S> __device__ bool invert_triangle(Entries<S> &a, int n) {
  __shared__ double row[2][S::rows];  // turn about, so that one barrier a step is enough
  __shared__ double over[2][S::rows]; // the same over the pivot
  __shared__ double pivot[S::rows];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
#pragma unroll
  for (int own = 0; own < S::down; ++own) // known here, so that entries stay in registers
    for (int k = own * S::warps; k < min(n, (own + 1) * S::warps); ++k) {
      double *const c = row[k % 2];
      double *const c_over = over[k % 2];
      if (y == k % S::warps) { // the warp that has the row divides, while others wait
        const double diagonal = __shfl_sync(0xffffffffu, a.at[own][own * S::warps / side], k % side);
        const double reciprocal = 1 / diagonal;
#pragma unroll
        for (int w = 0; w < S::across; ++w) {
          c[x + side * w] = a.at[own][w];
          c_over[x + side * w] = a.at[own][w] * reciprocal;
        }
        if (x == 0)
          pivot[k] = diagonal;
      }
      __syncthreads();
      double right[S::across];
#pragma unroll
      for (int w = 0; w < S::across; ++w)
        right[w] = c[x + side * w];
#pragma unroll
      for (int u = own; u < S::down; ++u) { // rows above are done
        const int i = y + S::warps * u;
        const double factor = c_over[i]; // the matrix's rest is symmetric: c is its column, too
#pragma unroll
        for (int w = 0; w < S::across; ++w) {
          const double left = x + side * w == k ? -factor : fma(-factor, right[w], a.at[u][w]);
          a.at[u][w] = i > k ? left : a.at[u][w];
        }
      }
    }
  bool positive = true;
  for (int k = x; k < n; k += side)
    positive = positive && pivot[k] > 0;
  if (__syncthreads_and(positive ? 1 : 0) == 0)
    return false;
  for (int k = x; k < n && y == 0; k += side)
    row[0][k] = 1 / sqrt(pivot[k]);
  __syncthreads();
  for_entries<S>(n, [&](int i, int j, int u, int w) {
    const double root = row[0][i];
    a.at[u][w] = i == j ? root : i > j ? a.at[u][w] * root : 0;
  });
  return true;
}

/// T^T T of the triangle T in shared memory, summed over k from the diagonal on.
template <class S, class A> __device__ Entries<S> square(const A &a, int n) {
  Entries<S> sum{};
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
#pragma unroll 4
  for (int k = 0; k < n; ++k) {
    double right[S::across];
#pragma unroll
    for (int w = 0; w < S::across; ++w)
      right[w] = a(k, x + side * w);
#pragma unroll
    for (int u = 0; u < S::down; ++u) {
      const int i = y + S::warps * u;
      const double left = a(k, i);
#pragma unroll
      for (int w = 0; w < S::across; ++w)
        sum.at[u][w] = k >= i && k >= x + side * w ? fma(left, right[w], sum.at[u][w]) : sum.at[u][w];
    }
  }
  return sum;
}

struct Rotation {
  int p, q; // the rows and columns that it mixes; q = n: it does nothing
  double cosine, sine, tangent;
};

/// Pair `k` of those that step `step` of a round robin between m players brings together.
__device__ Rotation pair_of(int step, int k, int m) {
  const int a = (step + k) % (m - 1);
  const int b = k == 0 ? m - 1 : (step - k + m - 1) % (m - 1);
  return {min(a, b), max(a, b), 1, 0, 0};
}

/// The rotation that makes a(p, q) zero; Golub and Van Loan 2013, 8.5.2.
template <class A> __device__ bool rotate(const A &a, int n, Rotation &r) {
  if (r.q >= n)
    return false;
  const double off = a(r.p, r.q);
  if (fabs(off) <= negligible)
    return false;
  const double tau = (a(r.q, r.q) - a(r.p, r.p)) / (2 * off);
  r.tangent = copysign(1.0, tau) / (fabs(tau) + sqrt(1 + tau * tau));
  r.cosine = 1 / sqrt(1 + r.tangent * r.tangent);
  r.sine = r.tangent * r.cosine;
  return true;
}

__device__ void mix(const Rotation &r, double &x, double &y) {
  const double before = x;
  x = r.cosine * before - r.sine * y;
  y = r.sine * before + r.cosine * y;
}

/// Diagonalizes a, n x n in shared memory, and leaves its eigenvectors in the columns of q. Jacobi's method: pairs of
/// one step have no row in common, so all are rotated at once. False if it does not converge.
template <class S, class A, class Q> __device__ bool diagonalize(const A &a, int n, const Q &q) {
  __shared__ Rotation rotation[side];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int players = n + n % 2;
  const int pairs = players / 2;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    int rotated = 0;
    for (int step = 0; step < players - 1; ++step) {
      if (y == 0 && x < pairs) {
        rotation[x] = pair_of(step, x, players);
        rotated |= rotate(a, n, rotation[x]) ? 1 : 0;
      }
      __syncthreads();
      if (x < pairs) {
        const Rotation &right = rotation[x];
        for (int l = y; l <= x; l += S::warps) { // where the two pairs' rows and columns meet, and its mirror image
          const Rotation &left = rotation[l];
          if (x == l) {
            if (right.q < n) {
              const double off = right.tangent * a(right.p, right.q);
              a(right.p, right.p) -= off;
              a(right.q, right.q) += off;
              if (right.tangent != 0)
                a(right.p, right.q) = a(right.q, right.p) = 0;
            }
          } else {
            const auto read = [&](int i, int j) { return i < n && j < n ? a(i, j) : 0; };
            double pp = read(left.p, right.p), pq = read(left.p, right.q);
            double qp = read(left.q, right.p), qq = read(left.q, right.q);
            mix(left, pp, qp);
            mix(left, pq, qq);
            mix(right, pp, pq);
            mix(right, qp, qq);
            const auto write = [&](int i, int j, double value) {
              if (i < n && j < n)
                a(i, j) = a(j, i) = value;
            };
            write(left.p, right.p, pp);
            write(left.p, right.q, pq);
            write(left.q, right.p, qp);
            write(left.q, right.q, qq);
          }
        }
        if (right.q < n)
          for (int i = y; i < n; i += S::warps)
            mix(right, q(i, right.p), q(i, right.q));
      }
      __syncthreads();
    }
    if (__syncthreads_or(rotated) == 0)
      return true;
  }
  return false;
}

/// Rows and columns k of the normal equations are scaled by 2^exponent, which brings v(k, k) into [1, 4).
__device__ int scale_exponent(double diagonal) { return diagonal > 0 ? -(ilogb(diagonal) >> 1) : 0; }

/// x := v, or, where it is null, what `in` makes it; zero outside.
template <class S> __device__ void load(const SolveInput &in, const double *v, int n, Entries<S> &x) {
  i64 at[S::down * S::across];
  double number[S::down * S::across];
#pragma unroll
  for (int u = 0; u < S::down; ++u)
#pragma unroll
    for (int w = 0; w < S::across; ++w) {
      const int i = min(static_cast<int>(threadIdx.y) + S::warps * u, n - 1);
      const int j = min(static_cast<int>(threadIdx.x) + side * w, n - 1);
      at[u * S::across + w] = i * n + j;
    }
  if (v == nullptr)
    in.products(at, number);
  else
#pragma unroll
    for (int k = 0; k < S::down * S::across; ++k)
      number[k] = v[at[k]];
  for_entries<S>(n, [&](int i, int j, int u, int w) {
    const double entry = number[u * S::across + w];
    x.at[u][w] = v == nullptr && i == j ? entry + in.ridge : entry;
  });
}

/// The factor q from the eigenvectors of a scaled matrix, which a has room for, and what is found on the way; false
/// where they do not converge.
template <class S, class A, class Q>
__device__ bool factor_by_eigenvectors(const Entries<S> &scaled, int n, double cutoff, const int *exponent, const A &a,
                                       const Q &q, SolveRecord &found) {
  for_entries<S>(n, [&](int i, int j, int u, int w) { a(i, j) = scaled.at[u][w]; });
  for_entries<S>(n, [&](int i, int j, int, int) { q(i, j) = i == j ? 1 : 0; });
  __syncthreads();
  if (!diagonalize<S>(a, n, q))
    return false;
  double top = a(0, 0);
  double bottom = top;
  for (int e = 1; e < n; ++e) {
    top = fmax(top, a(e, e));
    bottom = fmin(bottom, a(e, e));
  }
  const auto keep = [&](int e) { return a(e, e) > cutoff * top && a(e, e) > 0; };
  found = {0, 1, bottom > 0 && top <= most_condition * bottom ? top / bottom : most_condition, SolveFailure::none,
           0, 0};
  for (int e = 0; e < n; ++e)
    found.effective_rank += keep(e) ? 1 : 0;
  Entries<S> x{};
  for_entries<S>(n, [&](int i, int j, int u, int w) { // eigenvectors become rows
    x.at[u][w] = keep(i) ? scalbn(q(j, i) / sqrt(a(i, i)), exponent[j]) : 0;
  });
  __syncthreads();
  for_entries<S>(n, [&](int i, int j, int u, int w) { q(i, j) = x.at[u][w]; });
  return true;
}

/// The factor and how it came about. f has the eigenvectors on the way: a block sees what its threads write. With
/// Prepares, v comes from `in`, and a second block writes scales besides.
template <class S, bool Prepares>
__global__ void __launch_bounds__(side *S::warps)
    factor_small(const __grid_constant__ SolveInput in, SolveScalesOut scales, double *v, int n, double cutoff,
                 double *f, SolveRecord *record) {
  __shared__ double matrix[S::rows * (S::rows + 1)];
  __shared__ int exponent[S::rows];
  __shared__ unsigned long long first_bad;
  if constexpr (Prepares)
    if (blockIdx.x > 0) {
      for (int r = static_cast<int>(threadIdx.x); r < n && threadIdx.y == 0; r += side)
        in.write_scales(r, scales);
      return;
    }
  const bool first = threadIdx.x == 0 && threadIdx.y == 0;
  const auto a = [&](int i, int j) -> double & { return matrix[i * (S::rows + 1) + j]; };
  const auto q = [&](int i, int j) -> double & { return f[i * n + j]; };
  const auto fail = [&](const SolveRecord &how) {
    for_entries<S>(n, [&](int i, int j, int, int) { q(i, j) = nan(""); });
    if (first)
      *record = how;
  };

  if (first)
    first_bad = ~0ull;
  __syncthreads();
  Entries<S> x{};
  load(in, Prepares ? nullptr : v, n, x);
  for_entries<S>(n, [&](int i, int j, int u, int w) {
    if constexpr (Prepares)
      v[i * n + j] = x.at[u][w];
    if (!isfinite(x.at[u][w]))
      atomicMin(&first_bad, static_cast<unsigned long long>(i * n + j));
    if (i == j)
      exponent[i] = scale_exponent(x.at[u][w]);
  });
  __syncthreads();
  if (first_bad != ~0ull)
    return fail({0, 0, 0, SolveFailure::not_finite, static_cast<i64>(first_bad), v[first_bad]});

  for_entries<S>(n, [&](int i, int j, int u, int w) { x.at[u][w] = scalbn(x.at[u][w], exponent[i] + exponent[j]); });
  const Entries<S> scaled = x;
  SolveRecord found{static_cast<double>(n), 0, 0, SolveFailure::none, 0, 0};
  const double norm = norm_of(x);
  // The same branch in all threads: what decides it is the same in all.
  bool good = invert_triangle(x, n);
  if (good) {
    for_entries<S>(n, [&](int i, int j, int u, int w) { a(i, j) = x.at[u][w]; });
    __syncthreads();
    const Entries<S> inverse = square<S>(a, n);
    found.condition = norm * norm_of(inverse); // with a barrier: all have read the triangle
    good = found.condition * cutoff <= 1;
    found.condition = fmin(found.condition, most_condition);
  }
  if (good) {
    for_entries<S>(n, [&](int i, int j, int u, int w) { q(i, j) = scalbn(x.at[u][w], exponent[j]); });
    if (first)
      *record = found;
    return;
  }

  if (!factor_by_eigenvectors<S>(scaled, n, cutoff, exponent, a, q, found))
    return fail({0, 1, 0, SolveFailure::no_convergence, 0, 0});
  if (first)
    *record = found;
}

template <bool Prepares>
void start(Gpu &device, unsigned blocks, const SolveInput &in, const SolveScalesOut &scales, double *v, double cutoff,
           double *f, SolveRecord *record) {
  const auto launch = [&](auto shape) {
    using S = decltype(shape);
    factor_small<S, Prepares>
        <<<blocks, dim3(side, S::warps), 0, Prepares ? device.exchange_stream() : device.stream()>>>(
            in, scales, v, static_cast<int>(in.rank), cutoff, f, record);
    check_launch("solving the normal equations");
  };
  if (in.rank <= Narrow::rows)
    launch(Narrow{});
  else
    launch(Wide{});
}

} // namespace

void factor_small(Gpu &device, const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) {
  start<false>(device, 1, SolveInput({}, rank), {}, const_cast<double *>(v), cutoff, f, record); // it is read only
}

void prepare_small(Gpu &device, const SolveInput &in, double cutoff, const PreparedSolve &out) {
  start<true>(device, 2, in, out.scales, out.v, cutoff, out.f, out.record);
}

} // namespace td::kernels::cuda
