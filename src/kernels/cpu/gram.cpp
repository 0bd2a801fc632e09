// A^T A, and the product of a factor with a small matrix: rows go through in tiles that stay in cache, in f64.
#include <algorithm>

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/parts.hpp"
#include "kernels/cpu/simd.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 tile_numbers = 16384;        // 128 KiB: a tile stays in the second-level cache with room for its product
constexpr i64 panel = 24;                  // rows of a Gram matrix taken together: three tiles of the small product
constexpr i64 gram_numbers = i64{1} << 22; // of all parts' Gram matrices together: 32 MiB

i64 tile_rows(i64 width) { return std::clamp<i64>(tile_numbers / width, 16, 512); }

/// to := rows of a in f64, the columns beyond a's left as they are.
void copy_rows(const ConstMatrix &a, Range rows, double *to, i64 ld) {
  dispatch(a.type, [&](auto zero) {
    for (i64 i = rows.begin; i < rows.end; ++i)
      std::copy_n(a.row<decltype(zero)>(i), a.cols, to + (i - rows.begin) * ld);
  });
}

/// Adds tile^T tile to the upper triangle of g, both `width` wide.
void add_gram(const double *tile, i64 rows, i64 rank, i64 width, double *g) {
  const i64 lanes = simd::lanes(ValueType::f64);
  for (i64 r = 0; r < rank; r += panel) {
    const i64 first = r / lanes * lanes;
    simd::Product<double> p;
    p.a = tile + r;
    p.a_row = 1;
    p.a_depth = width;
    p.b = tile + first;
    p.b_ld = width;
    p.c = g + r * width + first;
    p.c_ld = width;
    p.rows = std::min(panel, rank - r);
    p.depth = rows;
    p.columns = width - first;
    simd::add_product(p);
  }
}

} // namespace

void CpuBackend::gram(ConstMatrix a, double *g) {
  const i64 rank = a.cols;
  const i64 width = simd::padded(rank, ValueType::f64);
  const i64 step = tile_rows(width);
  const i64 parts = parts_of(a.rows, step, std::clamp<i64>(gram_numbers / (rank * width), 8, 64));
  Buffer<double> sum(rank * width, "a Gram matrix");
  sum_parts(threads_, parts, rank * width, sum.data(), [&](i64 part, double *own) {
    const Range rows = part_of({0, a.rows}, part, parts);
    auto tile = Buffer<double>::zeros(std::min(step, rows.size()) * width, "rows of a factor");
    for (i64 i = rows.begin; i < rows.end; i += step) {
      const Range some{i, std::min(i + step, rows.end)};
      copy_rows(a, some, tile.data(), width);
      add_gram(tile.data(), some.size(), rank, width, own);
    }
  });
  for (i64 r = 0; r < rank; ++r)
    for (i64 s = r; s < rank; ++s)
      g[r * rank + s] = g[s * rank + r] = sum[r * width + s];
}

void CpuBackend::multiply(ConstMatrix m, const double *p, Matrix a) {
  const i64 width = simd::padded(a.cols, ValueType::f64);
  const i64 step = tile_rows(std::max(width, m.cols));
  auto right = Buffer<double>::zeros(m.cols * width, "a small matrix");
  for (i64 k = 0; k < m.cols; ++k)
    std::copy_n(p + k * a.cols, a.cols, right.data() + k * width);
  parallel_ranges(threads_, m.rows, step / 4, [&](Range rows) {
    const i64 most = std::min(step, rows.size());
    Buffer<double> left(most * m.cols, "rows of a factor");
    Buffer<double> product(most * width, "rows of a product");
    for (i64 i = rows.begin; i < rows.end; i += step) {
      const Range some{i, std::min(i + step, rows.end)};
      copy_rows(m, some, left.data(), m.cols); // also lets a be m
      std::fill_n(product.data(), some.size() * width, 0.0);
      simd::add_product(simd::Product<double>{left.data(), m.cols, 1, right.data(), width, product.data(), width,
                                              some.size(), m.cols, width, nullptr});
      dispatch(a.type, [&](auto zero) {
        using T = decltype(zero);
        for (i64 k = some.begin; k < some.end; ++k)
          std::transform(product.data() + (k - i) * width, product.data() + (k - i) * width + a.cols, a.row<T>(k),
                         [](double x) { return static_cast<T>(x); });
      });
    }
  });
}

} // namespace td::kernels::cpu
