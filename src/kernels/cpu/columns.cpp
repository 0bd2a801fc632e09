// What is done column by column: memory-bound walks over rows, in parts that do not depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/parts.hpp"
#include "kernels/philox.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 column_grain = 16384; // numbers that are worth a thread or a part
constexpr i64 most_column_parts = 64;

i64 row_parts(i64 rows, i64 columns) { return parts_of(rows * columns, column_grain, most_column_parts); }

template <class T> void add_dots_of(const ConstMatrix &a, const ConstMatrix &b, Range rows, double *sum) {
  for (i64 i = rows.begin; i < rows.end; ++i) {
    const T *x = a.row<T>(i);
    const T *y = b.row<T>(i);
    for (i64 r = 0; r < a.cols; ++r)
      sum[r] += static_cast<double>(x[r]) * static_cast<double>(y[r]);
  }
}

template <class T> void fill_row(T *row, i64 columns, u64 seed, int mode, i64 index) {
  for (i64 r = 0; r < columns; r += 2) {
    const auto pair = random_pair(seed, mode, index, r / 2);
    row[r] = unit_interval<T>(pair[0]);
    if (r + 1 < columns)
      row[r + 1] = unit_interval<T>(pair[1]);
  }
}

} // namespace

void raise_to_magnitudes(const ConstMatrix &a, Range rows, double *largest) {
  dispatch(a.type, [&](auto zero) {
    for (i64 i = rows.begin; i < rows.end; ++i) {
      const auto *x = a.row<decltype(zero)>(i);
      for (i64 r = 0; r < a.cols; ++r)
        largest[r] = std::max(largest[r], std::abs(static_cast<double>(x[r])));
    }
  });
}

void add_dots(const ConstMatrix &a, const ConstMatrix &b, Range rows, double *sum) {
  dispatch(a.type, [&](auto zero) { add_dots_of<decltype(zero)>(a, b, rows, sum); });
}

void divide_rows(const Matrix &a, Range rows, const double *divisor) {
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    for (i64 i = rows.begin; i < rows.end; ++i) {
      T *x = a.row<T>(i);
      for (i64 r = 0; r < a.cols; ++r)
        x[r] = static_cast<T>(static_cast<double>(x[r]) / divisor[r]);
    }
  });
}

void CpuBackend::column_dots(ConstMatrix a, ConstMatrix b, double *out) {
  const i64 parts = row_parts(a.rows, a.cols);
  sum_parts(threads_, parts, a.cols, out, [&](i64 part, double *sum) {
    add_dots(a, b, part_of({0, a.rows}, part, parts), sum);
  });
}

void CpuBackend::column_norms(ConstMatrix a, NormKind kind, double *out) {
  if (kind == NormKind::two)
    return column_dots(a, a, out);
  const i64 parts = row_parts(a.rows, a.cols);
  auto largest = Buffer<double>::zeros(parts * a.cols, "largest magnitudes");
  for_each_item(threads_, parts, [&](i64 part) {
    raise_to_magnitudes(a, part_of({0, a.rows}, part, parts), largest.data() + part * a.cols);
  });
  std::fill_n(out, a.cols, 0.0);
  for (i64 part = 0; part < parts; ++part)
    for (i64 r = 0; r < a.cols; ++r)
      out[r] = std::max(out[r], largest[part * a.cols + r]);
}

void CpuBackend::divide_columns(Matrix a, const double *d) {
  Buffer<double> divisor(a.cols, "the divisors of columns");
  std::transform(d, d + a.cols, divisor.data(), [](double x) { return x == 0 ? 1.0 : x; });
  parallel_ranges(threads_, a.rows, column_grain / a.cols + 1,
                  [&](Range rows) { divide_rows(a, rows, divisor.data()); });
}

void CpuBackend::random_uniform(Matrix a, u64 seed, int mode, i64 first_row) {
  parallel_ranges(threads_, a.rows, column_grain / a.cols + 1, [&](Range rows) {
    dispatch(a.type, [&](auto zero) {
      using T = decltype(zero);
      for (i64 i = rows.begin; i < rows.end; ++i)
        fill_row(a.row<T>(i), a.cols, seed, mode, first_row + i);
    });
  });
}

} // namespace td::kernels::cpu
