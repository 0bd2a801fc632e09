#include <cmath>

#include "core/buffer.hpp"
#include "kernels/philox.hpp"
#include "kernels/reference/backend.hpp"
#include "kernels/reference/entries.hpp"

namespace td::kernels::reference {

void ReferenceBackend::gram(ConstMatrix a, double *g) {
  for (i64 r = 0; r < a.cols; ++r)
    for (i64 s = 0; s < a.cols; ++s) {
      double sum = 0;
      for (i64 i = 0; i < a.rows; ++i)
        sum += element(a, i, r) * element(a, i, s);
      g[r * a.cols + s] = sum;
    }
}

void ReferenceBackend::multiply(ConstMatrix m, const double *p, Matrix a) {
  Buffer<double> row(a.cols, "one row of a product");
  for (i64 i = 0; i < a.rows; ++i) {
    for (i64 s = 0; s < a.cols; ++s) {
      row[s] = 0;
      for (i64 r = 0; r < m.cols; ++r)
        row[s] += element(m, i, r) * p[r * a.cols + s];
    }
    for (i64 s = 0; s < a.cols; ++s) // after the whole row is read: a may be m
      set_element(a, i, s, row[s]);
  }
}

void ReferenceBackend::solve_normal(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales,
                                    Matrix a) {
  const i64 rank = equations.rank;
  const bool correct = scales.before != nullptr && equations.record->used_eigen != 0;
  Buffer<double> before(rank, "one row of a factor");
  Buffer<double> left(rank, "one row of a right-hand side");
  Buffer<double> half(rank, "one row of a product");
  for (i64 i = 0; i < a.rows; ++i) {
    for (i64 r = 0; r < rank; ++r)
      before[r] = correct ? element(a, i, r) * scales.before[r] : 0;
    for (i64 r = 0; r < rank; ++r) {
      left[r] = element(m, i, r) * (scales.right != nullptr ? scales.right[r] : 1);
      for (i64 s = 0; correct && s < rank; ++s)
        left[r] -= before[s] * equations.v[s * rank + r];
    }
    for (i64 r = 0; r < rank; ++r) {
      half[r] = 0;
      for (i64 s = 0; s < rank; ++s)
        half[r] += left[s] * equations.f[r * rank + s];
    }
    for (i64 r = 0; r < rank; ++r) {
      double sum = 0;
      for (i64 s = 0; s < rank; ++s)
        sum += half[s] * equations.f[s * rank + r];
      set_element(a, i, r, (before[r] + sum) * (scales.solved != nullptr ? scales.solved[r] : 1));
    }
  }
}

void ReferenceBackend::column_norms(ConstMatrix a, NormKind kind, double *out) {
  for (i64 r = 0; r < a.cols; ++r) {
    out[r] = 0;
    for (i64 i = 0; i < a.rows; ++i) {
      const double x = element(a, i, r);
      out[r] = kind == NormKind::two ? out[r] + x * x : std::fmax(out[r], std::abs(x));
    }
  }
}

void ReferenceBackend::divide_columns(Matrix a, const double *d) {
  for (i64 i = 0; i < a.rows; ++i)
    for (i64 r = 0; r < a.cols; ++r)
      if (d[r] != 0)
        set_element(a, i, r, element(a, i, r) / d[r]);
}

void ReferenceBackend::column_dots(ConstMatrix a, ConstMatrix b, double *out) {
  for (i64 r = 0; r < a.cols; ++r) {
    out[r] = 0;
    for (i64 i = 0; i < a.rows; ++i)
      out[r] += element(a, i, r) * element(b, i, r);
  }
}

void ReferenceBackend::random_uniform(Matrix a, u64 seed, int mode, i64 first_row) {
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    for (i64 i = 0; i < a.rows; ++i)
      for (i64 r = 0; r < a.cols; ++r)
        a.row<T>(i)[r] = uniform<T>(seed, mode, first_row + i, r);
  });
}

} // namespace td::kernels::reference
