// A^T A, and the product of a factor with a small matrix: rows go through in tiles that stay in cache, in f64.
#include <algorithm>

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/gram_cuts.hpp"

namespace td::kernels::cpu {

namespace {

constexpr i64 panel = 24;             // rows of a Gram matrix taken together: three tiles of the small product
constexpr i64 triangle_registers = 2; // columns taken together of a triangle

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

/// Where a square matrix is not zero, if its shape says that.
enum class Nonzeros { all, above, below }; // the diagonal included

/// A matrix of at most a few hundred rows, padded to whole registers.
struct SmallMatrix {
  i64 rows, columns, width;
  Nonzeros nonzeros;
  Buffer<double> numbers; // [rows][width]

  /// Element (k, j) of the matrix is from[k * row_step + j * column_step].
  SmallMatrix(const double *from, i64 row_count, i64 column_count, i64 column_step, i64 row_step,
              Nonzeros where = Nonzeros::all)
      : rows(row_count), columns(column_count), width(simd::padded(column_count, ValueType::f64)), nonzeros(where),
        numbers(Buffer<double>::zeros(rows * width, "a small matrix")) {
    for (i64 k = 0; k < rows; ++k)
      for (i64 j = 0; j < columns; ++j)
        numbers[k * width + j] = from[k * row_step + j * column_step];
  }

  /// product := left times this matrix; product is `width` wide. Of a triangle, blocks of columns take only the rows
  /// that are not zero there: both triangles of a solve cost little more than one full matrix.
  void multiply(const double *left, i64 left_ld, i64 count, double *product) const {
    const i64 block = nonzeros == Nonzeros::all ? width : triangle_registers * simd::lanes(ValueType::f64);
    std::fill_n(product, count * width, 0.0);
    for (i64 column = 0; column < width; column += block) {
      const i64 wide = std::min(block, width - column);
      const i64 begin = nonzeros == Nonzeros::below ? std::min(column, rows) : 0;
      const i64 end = nonzeros == Nonzeros::above ? std::min(column + wide, rows) : rows;
      simd::add_product(simd::Product<double>{left + begin, left_ld, 1, numbers.data() + begin * width + column, width,
                                              product + column, width, count, end - begin, wide, nullptr});
    }
  }
};

/// Fills rows of a in tiles: make(most) gives a function with its own workspace for `most` rows, which writes rows
/// `some` of the product, padded to whole registers, where it is asked to: into a itself where a's rows are such.
template <class Make> void over_tiles(int threads, const Matrix &a, i64 widest, Make &&make) {
  const i64 width = simd::padded(a.cols, ValueType::f64);
  const bool direct = a.type == ValueType::f64 && a.cols == width && a.ld == width;
  const i64 step = tile_rows(widest);
  parallel_ranges(threads, a.rows, step / 4, [&](Range rows) {
    const i64 most = std::min(step, rows.size());
    Buffer<double> product(direct ? 0 : most * width, "rows of a product");
    auto compute = make(most);
    for (i64 i = rows.begin; i < rows.end; i += step) {
      const Range some{i, std::min(i + step, rows.end)};
      if (direct) {
        compute(some, a.row<double>(i));
        continue;
      }
      compute(some, product.data());
      dispatch(a.type, [&](auto zero) {
        using T = decltype(zero);
        for (i64 k = some.begin; k < some.end; ++k)
          std::transform(product.data() + (k - i) * width, product.data() + (k - i) * width + a.cols, a.row<T>(k),
                         [](double x) { return static_cast<T>(x); });
      });
    }
  });
}

/// g := A^T A, in parts that do not depend on the number of threads; ready(rows) is called before these are read.
template <class Ready> void gram_of(int threads, const ConstMatrix &a, Ready &&ready, double *g) {
  const i64 rank = a.cols;
  const GramCuts cuts(a.rows, rank);
  const i64 width = cuts.width;
  Buffer<double> sum(rank * width, "a Gram matrix");
  sum_parts(threads, cuts.parts, rank * width, sum.data(), [&](i64 part, double *own) {
    const Range rows = part_of({0, a.rows}, part, cuts.parts);
    auto tile = Buffer<double>::zeros(std::min(cuts.step, rows.size()) * width, "rows of a factor");
    for (i64 i = rows.begin; i < rows.end; i += cuts.step) {
      const Range some{i, std::min(i + cuts.step, rows.end)};
      ready(some);
      copy_rows(a, some, tile.data(), width);
      add_gram(tile.data(), some.size(), rank, width, own);
    }
  });
  for (i64 r = 0; r < rank; ++r)
    for (i64 s = r; s < rank; ++s)
      g[r * rank + s] = g[s * rank + r] = sum[r * width + s];
}

} // namespace

void CpuBackend::gram(ConstMatrix a, double *g) {
  gram_of(
      threads_, a, [](Range) {}, g);
}

void CpuBackend::divide_and_gram(Matrix a, const double *d, double *g) {
  Buffer<double> divisor(a.cols, "the divisors of columns");
  std::transform(d, d + a.cols, divisor.data(), [](double x) { return x == 0 ? 1.0 : x; });
  const auto divide = [&](Range rows) { divide_rows(a, rows, divisor.data()); };
  gram_of(threads_, a, divide, g);
}

void CpuBackend::multiply(ConstMatrix m, const double *p, Matrix a) {
  const SmallMatrix right(p, m.cols, a.cols, 1, a.cols);
  over_tiles(threads_, a, std::max(right.width, m.cols), [&](i64 most) {
    return [&, left = Buffer<double>(most * m.cols, "rows of a factor")](Range some, double *product) mutable {
      copy_rows(m, some, left.data(), m.cols); // also lets a be m
      right.multiply(left.data(), m.cols, some.size(), product);
    };
  });
}

void CpuBackend::solve_normal(const NormalEquations &equations, ConstMatrix m, const double *weights, Matrix a) {
  const i64 rank = equations.rank;
  const bool full = equations.record->used_eigen != 0;
  const bool correct = full && weights != nullptr;
  const SmallMatrix v(equations.v, correct ? rank : 0, rank, 1, rank);
  const SmallMatrix first(equations.f, rank, rank, rank, 1, full ? Nonzeros::all : Nonzeros::above);
  const SmallMatrix second(equations.f, rank, rank, 1, rank, full ? Nonzeros::all : Nonzeros::below);
  const i64 width = first.width;
  const bool in_place = !correct && m.type == ValueType::f64; // m's rows are read where they are
  over_tiles(threads_, a, width, [&](i64 most) {
    return [&, before = Buffer<double>(correct ? most * width : 0, "rows of a factor"),
            left = Buffer<double>(in_place ? 0 : most * width, "rows of a right-hand side"),
            half = Buffer<double>(most * width, "rows of a product")](Range some, double *product) mutable {
      const i64 numbers = some.size() * width;
      if (in_place)
        first.multiply(m.row<double>(some.begin), m.ld, some.size(), half.data());
      else
        copy_rows(m, some, left.data(), width);
      if (correct) {
        copy_rows(a, some, before.data(), width);
        for (i64 i = 0; i < some.size(); ++i)
          for (i64 r = 0; r < rank; ++r)
            before[i * width + r] *= weights[r];
        v.multiply(before.data(), width, some.size(), product);
        for (i64 i = 0; i < some.size(); ++i)
          for (i64 r = 0; r < rank; ++r)
            left[i * width + r] -= product[i * width + r];
      }
      if (!in_place)
        first.multiply(left.data(), width, some.size(), half.data());
      second.multiply(half.data(), width, some.size(), product);
      for (i64 k = 0; correct && k < numbers; ++k)
        product[k] += before[k];
    };
  });
}

} // namespace td::kernels::cpu
