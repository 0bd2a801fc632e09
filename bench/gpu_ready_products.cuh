// Dense MTTKRP by cuBLAS on a Khatri-Rao product that is ready in memory: what multiplying alone takes, without making
// that product. The fastest of what cuBLAS offers counts.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <cublas_v2.h>

#include "gpu_tensors.cuh"

namespace bench {

inline void need(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    std::printf("cuBLAS: status %d\n", static_cast<int>(status));
    std::exit(1);
  }
}

/// Of a tensor: its dims, as kernels take them.
struct Dims {
  int order = 0;
  i64 dims[max_order];
};
/// Row-major matrices of a column a component.
template <class T> struct Factors { const T *of[max_order]; };

/// to[k, r] := the product of the factors' rows of all modes but one: k counts their cells, the first mode fastest.
template <class T>
__global__ void multiply_rows(Dims x, Factors<T> factors, int mode, i64 cells, i64 rank, bool by_rows, T *to) {
  FOR_EACH(at, cells * rank) {
    const i64 k = by_rows ? at / rank : at % cells;
    const i64 r = by_rows ? at % rank : at / cells;
    T product = 1;
    i64 rest = k;
    for (int m = 0; m < x.order; ++m) {
      if (m == mode)
        continue;
      product *= factors.of[m][rest % x.dims[m] * rank + r];
      rest /= x.dims[m];
    }
    to[at] = product;
  }
}

/// C := A B + beta C, and so for many at once.
struct Gemm {
  cublasHandle_t cublas;
  cublasOperation_t a, b;
  int m, n, k;

  void operator()(const double *x, int ldx, const double *y, int ldy, double beta, double *z) const {
    const double one = 1;
    need(cublasDgemm(cublas, a, b, m, n, k, &one, x, ldx, y, ldy, &beta, z, m));
  }
  void operator()(const float *x, int ldx, const float *y, int ldy, float beta, float *z) const {
    const float one = 1;
    need(cublasSgemm(cublas, a, b, m, n, k, &one, x, ldx, y, ldy, &beta, z, m));
  }
  void batch(const double *x, int ldx, i64 dx, const double *y, int ldy, i64 dy, double *z, i64 count) const {
    const double one = 1, zero = 0;
    need(cublasDgemmStridedBatched(cublas, a, b, m, n, k, &one, x, ldx, dx, y, ldy, dy, &zero, z, m, i64{m} * n,
                                   static_cast<int>(count)));
  }
  void batch(const float *x, int ldx, i64 dx, const float *y, int ldy, i64 dy, float *z, i64 count) const {
    const float one = 1, zero = 0;
    need(cublasSgemmStridedBatched(cublas, a, b, m, n, k, &one, x, ldx, dx, y, ldy, dy, &zero, z, m, i64{m} * n,
                                   static_cast<int>(count)));
  }
};

/// to := the sum of a matrix's columns.
inline void add_columns(cublasHandle_t cublas, int rows, int columns, const double *a, const double *ones, double *to) {
  const double one = 1, zero = 0;
  need(cublasDgemv(cublas, CUBLAS_OP_N, rows, columns, &one, a, rows, ones, 1, &zero, to, 1));
}
inline void add_columns(cublasHandle_t cublas, int rows, int columns, const float *a, const float *ones, float *to) {
  const float one = 1, zero = 0;
  need(cublasSgemv(cublas, CUBLAS_OP_N, rows, columns, &one, a, rows, ones, 1, &zero, to, 1));
}

/// X as rows of the mode, with `left` elements before and `right` behind each.
struct Unfolding {
  i64 left = 1, rows = 1, right = 1;

  Unfolding(const Dims &x, int mode) : rows(x.dims[mode]) {
    for (int m = 0; m < x.order; ++m)
      (m < mode ? left : right) *= m == mode ? 1 : x.dims[m];
  }
  i64 cells() const { return left * right; }
};

struct Ready {
  double ms = std::numeric_limits<double>::infinity();
  std::string how = "does not fit";
};

/// Milliseconds of out := MTTKRP, row-major, by the fastest way that the GPU has memory for.
template <class T>
Ready multiply_ready(cublasHandle_t cublas, cudaStream_t stream, const Dims &dims, const T *x,
                     const Factors<T> &factors, int mode, i64 rank, T *out) {
  const Unfolding u(dims, mode);
  const auto left = static_cast<int>(u.left), rows = static_cast<int>(u.rows), right = static_cast<int>(u.right);
  const auto r = static_cast<int>(rank);
  const auto has_room = [](i64 numbers) {
    check(cudaDeviceSynchronize(), "giving memory back");
    std::size_t free = 0, all = 0;
    check(cudaMemGetInfo(&free, &all), "asking for free memory");
    return static_cast<double>(numbers) * sizeof(T) < 0.95 * static_cast<double>(free);
  };
  Ready best;
  if (std::max({u.left, u.cells() / u.left}) > std::numeric_limits<int>::max() || !has_room(u.cells() * rank))
    return best;
  const Array<T> product(u.cells() * rank);
  const auto attempt = [&](const char *how, const std::function<void()> &call) {
    if (const double ms = median_ms(stream, call, 7); ms < best.ms)
      best = {ms, how};
  };
  for (const bool by_rows : {true, false}) {
    multiply_rows<<<grid, block, 0, stream>>>(dims, factors, mode, u.cells(), rank, by_rows, product.data());
    const T *k = product.data();
    const int ld = by_rows ? r : static_cast<int>(u.cells());
    const cublasOperation_t as_rows = by_rows ? CUBLAS_OP_N : CUBLAS_OP_T;
    if (left == 1) {
      const Gemm whole{cublas, as_rows, CUBLAS_OP_T, r, rows, right};
      attempt("one product", [&] { whole(k, ld, x, rows, 0, out); });
      continue;
    }
    const Gemm one{cublas, as_rows, CUBLAS_OP_N, r, rows, left};
    const i64 next = by_rows ? u.left * rank : u.left;
    if (right <= 1024)
      attempt(right == 1 ? "one product" : "products, added", [&] {
        for (i64 b = 0; b < right; ++b)
          one(k + b * next, ld, x + b * u.left * u.rows, left, b == 0 ? T{0} : T{1}, out);
      });
    if (right == 1 || !has_room(u.rows * rank * u.right + u.right))
      continue;
    const Array<T> sums(u.rows * rank * u.right);
    const Array<T> ones(std::vector<T>(static_cast<std::size_t>(u.right), T{1}));
    attempt("a batch, summed", [&] {
      one.batch(k, ld, next, x, left, u.left * u.rows, sums.data(), u.right);
      add_columns(cublas, r * rows, right, sums.data(), ones.data(), out);
    });
  }
  return best;
}

} // namespace bench
