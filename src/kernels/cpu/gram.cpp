// A^T A, and the product of a factor with a small matrix: rows go through in tiles that stay in cache, in f64.
#include <algorithm>
#include <functional>

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

/// Whether a product's rows, padded to whole registers, can be written where a's rows are.
bool is_padded(const Matrix &a) {
  const i64 width = simd::padded(a.cols, ValueType::f64);
  return a.type == ValueType::f64 && a.cols == width && a.ld == width;
}

/// Rows `some` of a := what compute(some, to) writes, padded to whole registers: into a itself where a's rows are such.
template <class Compute> void fill_tile(const Matrix &a, Range some, double *product, Compute &&compute) {
  if (is_padded(a))
    return compute(some, a.row<double>(some.begin));
  const i64 width = simd::padded(a.cols, ValueType::f64);
  compute(some, product);
  dispatch(a.type, [&](auto zero) {
    using T = decltype(zero);
    for (i64 k = some.begin; k < some.end; ++k, product += width)
      std::transform(product, product + a.cols, a.row<T>(k), [](double x) { return static_cast<T>(x); });
  });
}

/// Fills rows of a in tiles: make(most) gives a function with its own workspace for `most` rows, as fill_tile takes it.
template <class Make> void over_tiles(int threads, const Matrix &a, i64 widest, Make &&make) {
  const i64 step = tile_rows(widest);
  parallel_ranges(threads, a.rows, step / 4, [&](Range rows) {
    const i64 most = std::min(step, rows.size());
    Buffer<double> product(is_padded(a) ? 0 : most * simd::padded(a.cols, ValueType::f64), "rows of a product");
    auto compute = make(most);
    for (i64 i = rows.begin; i < rows.end; i += step)
      fill_tile(a, {i, std::min(i + step, rows.end)}, product.data(), compute);
  });
}

/// g := A^T A, in parts that do not depend on the number of threads; of each begin(part, most) gives a function, which
/// is called with rows, at most `most`, before these are read.
template <class Begin> void gram_of(int threads, const ConstMatrix &a, Begin &&begin, double *g) {
  const i64 rank = a.cols;
  const GramCuts cuts(a.rows, rank);
  const i64 width = cuts.width;
  Buffer<double> sum(rank * width, "a Gram matrix");
  sum_parts(threads, cuts.parts, rank * width, sum.data(), [&](i64 part, double *own) {
    const Range rows = part_of({0, a.rows}, part, cuts.parts);
    const i64 most = std::min(cuts.step, rows.size());
    auto tile = Buffer<double>::zeros(most * width, "rows of a factor");
    auto ready = begin(part, most);
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

/// One solve: what all tiles read of it, and what a tile of rows comes to.
class RowSolver {
public:
  RowSolver(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a)
      : m_(m), a_(a), scales_(scales), full_(equations.record->used_eigen != 0),
        corrects_(full_ && scales.before != nullptr),
        v_(equations.v, corrects_ ? equations.rank : 0, equations.rank, 1, equations.rank),
        first_(equations.f, equations.rank, equations.rank, equations.rank, 1, full_ ? Nonzeros::all : Nonzeros::above),
        second_(equations.f, equations.rank, equations.rank, 1, equations.rank,
                full_ ? Nonzeros::all : Nonzeros::below) {
    const auto each = [&](SmallMatrix &matrix, auto &&factor) {
      for (i64 k = 0; k < matrix.rows; ++k)
        for (i64 j = 0; j < matrix.columns; ++j)
          matrix.numbers[k * matrix.width + j] *= factor(k, j);
    };
    if (scales.right != nullptr && !corrects_) // else the right-hand side is scaled before v's product is taken off
      each(first_, [&](i64 k, i64) { return scales.right[k]; });
    if (scales.solved != nullptr)
      each(second_, [&](i64, i64 j) { return scales.solved[j]; });
  }

  /// A function with workspace for `most` rows, as fill_tile takes it.
  auto with_workspace(i64 most) const {
    const i64 width = first_.width;
    const bool in_place = !corrects_ && m_.type == ValueType::f64; // m's rows are read where they are
    return [this, in_place, before = Buffer<double>(corrects_ ? most * width : 0, "rows of a factor"),
            left = Buffer<double>(in_place ? 0 : most * width, "rows of a right-hand side"),
            half = Buffer<double>(most * width, "rows of a product")](Range some, double *product) mutable {
      if (in_place)
        first_.multiply(m_.row<double>(some.begin), m_.ld, some.size(), half.data());
      else
        copy_rows(m_, some, left.data(), first_.width);
      if (corrects_)
        take_off_before(some, before.data(), left.data(), product);
      if (!in_place)
        first_.multiply(left.data(), first_.width, some.size(), half.data());
      second_.multiply(half.data(), first_.width, some.size(), product);
      if (corrects_)
        add_before(some, before.data(), product);
    };
  }

private:
  /// left := left diag(right) - before v, with before := a diag(before).
  void take_off_before(Range some, double *before, double *left, double *product) const {
    const i64 width = first_.width;
    copy_rows(a_, some, before, width);
    for (i64 i = 0; i < some.size(); ++i)
      for (i64 r = 0; r < a_.cols; ++r)
        before[i * width + r] *= scales_.before[r];
    v_.multiply(before, width, some.size(), product);
    for (i64 i = 0; i < some.size(); ++i)
      for (i64 r = 0; r < a_.cols; ++r) {
        double &x = left[i * width + r];
        x = (scales_.right != nullptr ? x * scales_.right[r] : x) - product[i * width + r];
      }
  }
  void add_before(Range some, const double *before, double *product) const {
    const i64 width = first_.width;
    for (i64 i = 0; i < some.size(); ++i)
      for (i64 r = 0; r < a_.cols; ++r)
        product[i * width + r] += before[i * width + r] * (scales_.solved != nullptr ? scales_.solved[r] : 1);
  }

  ConstMatrix m_;
  Matrix a_;
  SolveScales scales_;
  bool full_;     // else the factor is a triangle
  bool corrects_; // for eigenvalues that were dropped
  SmallMatrix v_, first_, second_;
};

} // namespace

void CpuBackend::gram(ConstMatrix a, double *g) {
  gram_of(
      threads_, a, [](i64, i64) { return [](Range) {}; }, g);
}

void CpuBackend::divide_and_gram(Matrix a, const double *d, double *g) {
  Buffer<double> divisor(a.cols, "the divisors of columns");
  std::transform(d, d + a.cols, divisor.data(), [](double x) { return x == 0 ? 1.0 : x; });
  const auto divide = [&](Range rows) { divide_rows(a, rows, divisor.data()); };
  gram_of(
      threads_, a, [&](i64, i64) { return divide; }, g);
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

void CpuBackend::solve_normal(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a) {
  const RowSolver solver(equations, m, scales, a);
  over_tiles(threads_, a, simd::padded(a.cols, ValueType::f64), [&](i64 most) { return solver.with_workspace(most); });
}

void CpuBackend::solve_and_sum(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a,
                               const ColumnSums &sums) {
  const RowSolver solver(equations, m, scales, a);
  const i64 rank = a.cols;
  const i64 parts = GramCuts(a.rows, rank).parts;
  const bool wants_inner = sums.inner != nullptr;
  auto largest = Buffer<double>::zeros(parts * rank, "largest magnitudes");
  auto inner = Buffer<double>::zeros(wants_inner ? parts * rank : 0, "partial sums");
  const auto begin = [&](i64 part, i64 most) {
    const i64 room = is_padded(a) ? 0 : most * simd::padded(rank, ValueType::f64);
    return [&, part, product = Buffer<double>(room, "rows of a product"),
            solve = solver.with_workspace(most)](Range some) mutable {
      fill_tile(a, some, product.data(), solve);
      raise_to_magnitudes(a, some, largest.data() + part * rank);
      if (wants_inner)
        add_dots(m, a, some, inner.data() + part * rank);
    };
  };
  gram_of(threads_, a, begin, sums.gram);
  const auto meet = [&](const Buffer<double> &of_parts, double *out, auto &&join) {
    std::fill_n(out, rank, 0.0);
    for (i64 part = 0; part < parts; ++part)
      for (i64 r = 0; r < rank; ++r)
        out[r] = join(out[r], of_parts[part * rank + r]);
  };
  meet(largest, sums.largest, [](double x, double y) { return std::max(x, y); });
  if (wants_inner)
    meet(inner, sums.inner, std::plus<>());
  if (sums.weights != nullptr)
    finish_columns(rank, scales.solved, sums.largest, sums.weights, sums.scales, sums.gram);
}

} // namespace td::kernels::cpu
