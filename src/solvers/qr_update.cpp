#include "solvers/qr_update.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/checked.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

namespace td::solvers {

namespace {

Columns by_columns(const double *by_rows, i64 rows, i64 columns) {
  Columns a = Columns::zeros(rows, columns);
  for (i64 i = 0; i < rows; ++i)
    for (i64 c = 0; c < columns; ++c)
      a.column(c)[i] = by_rows[i * columns + c];
  return a;
}

} // namespace

/// K's small part and the least squares problem with it.
struct QrUpdate::SmallSystem {
  Columns k; // combinations x rank
  Columns q; // combinations x n: k (with the ridge below it) = q r
  Columns r; // n x rank, its columns scaled by powers of two
  std::vector<double> scale;
  Columns u, w; // r = u diag(s) w^T; w with rank rows
  std::vector<double> s;
  i64 kept = 0;
};

QrUpdate::QrUpdate(const tensor::Tensor &x, const Ktensor &start, const Worker &worker, kernels::Backend &backend,
                   Communicator &others, Products &products)
    : x_(x), start_(start), worker_(worker), backend_(backend), others_(others), products_(products),
      rank_(start.rank()), decomposed_(static_cast<std::size_t>(x.order())),
      staged_(backend, x.stored_dims(), rank_, ValueType::f64) {
  if (products.precision() != ValueType::f64 || x.type() != ValueType::f64)
    throw_error(Status::unsupported, "option 'solve' = qr for a tensor in f32: expected f64 values and rows");
}

void QrUpdate::changed(int mode) {
  decomposed_[static_cast<std::size_t>(mode)].current = false;
  decomposed_[static_cast<std::size_t>(mode)].updated = true;
}

void QrUpdate::refresh(int mode, const Replica &factors) {
  Decomposed &d = decomposed_[static_cast<std::size_t>(mode)];
  if (d.current)
    return;
  if (x_.distribution() != nullptr)
    return decompose_shared(mode, factors);
  const ConstMatrix given = start_.factor(mode);
  const Matrix stored = factors[mode];
  const i64 rows = d.updated ? stored.rows : given.rows;
  std::vector<double> by_rows(static_cast<std::size_t>(rows * rank_));
  if (d.updated)
    backend_.download(by_rows.data(), stored.data, rows * rank_ * 8);
  else
    std::copy_n(given.row<double>(0), rows * rank_, by_rows.data());
  Columns a = by_columns(by_rows.data(), rows, rank_);
  d.r = decompose_qr(a);
  const std::span<const i64> numbered = x_.numbering().rows(mode);
  if (d.updated || numbered.empty()) {
    d.q = std::move(a);
  } else {
    d.q = Columns::zeros(stored.rows, a.columns);
    for (i64 c = 0; c < a.columns; ++c)
      for (i64 i = 0; i < stored.rows; ++i)
        d.q.column(c)[i] = a.column(c)[numbered[static_cast<std::size_t>(i)]];
  }
  d.current = true;
}

// Rows that nobody holds are zero once a factor has been updated; those of a start are in blocks.
void QrUpdate::decompose_shared(int mode, const Replica &factors) {
  const tensor::Distribution &shared = *x_.distribution();
  Decomposed &d = decomposed_[static_cast<std::size_t>(mode)];
  const Matrix held = factors[mode];
  const i64 own = shared.own(mode).empty() ? 0 : shared.own(mode).front().size();
  std::vector<double> own_numbers(static_cast<std::size_t>(d.updated ? own * rank_ : 0));
  if (!own_numbers.empty())
    backend_.download(own_numbers.data(), held.data, own * rank_ * 8);
  const Columns q = decompose_together(d.updated ? ConstMatrix{own_numbers.data(), ValueType::f64, own, rank_, rank_}
                                                 : start_.factor(mode),
                                       start_.dims()[static_cast<std::size_t>(mode)], d.r);
  std::vector<double> rows(static_cast<std::size_t>(q.rows * q.columns));
  for (i64 c = 0; c < q.columns; ++c)
    for (i64 i = 0; i < q.rows; ++i)
      rows[static_cast<std::size_t>(i * q.columns + c)] = q.column(c)[i];
  const Matrix there{staged_[mode].data, ValueType::f64, held.rows, q.columns, q.columns};
  if (!d.updated) {
    worker_.fetch(mode, {rows.data(), ValueType::f64, q.rows, q.columns, q.columns}, there);
  } else {
    if (!rows.empty())
      backend_.upload(there.data, rows.data(), std::ssize(rows) * 8);
    worker_.gather(mode, there);
  }
  rows.resize(static_cast<std::size_t>(held.rows * q.columns));
  backend_.download(rows.data(), there.data, std::ssize(rows) * 8);
  d.q = by_columns(rows.data(), held.rows, q.columns);
  d.current = true;
}

// The rows of a process are decomposed by themselves, and then what that leaves of all processes, on the first of them:
// the tall and skinny QR of Demmel, Grigori, Hoemmen and Langou 2012, of one level. Gives the rows of Q.
Columns QrUpdate::decompose_together(ConstMatrix mine, i64 all_rows, Columns &whole_r) const {
  Processes &processes = x_.distribution()->processes();
  const i64 columns = std::min(all_rows, rank_);
  Columns q = by_columns(mine.row<double>(0), mine.rows, rank_);
  const Columns r = mine.rows > 0 ? decompose_qr(q) : Columns::zeros(0, rank_);

  // Each process brings as many rows; those below its r are zero.
  std::vector<i64> rows(static_cast<std::size_t>(rank_ * rank_), 0);
  for (i64 c = 0; c < rank_; ++c)
    for (i64 i = 0; i < r.rows; ++i)
      rows[static_cast<std::size_t>(c * rank_ + i)] = std::bit_cast<i64>(r.column(c)[i]);
  const std::vector<i64> all = processes.all_gather(rows);
  Columns stack = Columns::zeros(rank_ * others_.size(), rank_);
  for (i64 p = 0; p < others_.size(); ++p)
    for (i64 c = 0; c < rank_; ++c)
      for (i64 i = 0; i < rank_; ++i)
        stack.column(c)[p * rank_ + i] =
            std::bit_cast<double>(all[static_cast<std::size_t>((p * rank_ + c) * rank_ + i)]);
  Columns top = decompose_qr(stack);
  others_.broadcast(stack.numbers.data(), std::ssize(stack.numbers) * 8); // roundings of processes may differ
  others_.broadcast(top.numbers.data(), std::ssize(top.numbers) * 8);

  Columns whole_q = Columns::zeros(mine.rows, columns);
  const i64 first = rank_ * others_.rank();
  parallel_ranges(backend_.threads(), mine.rows, 256, [&](Range part) {
    for (i64 c = 0; c < columns; ++c)
      for (i64 k = 0; k < r.rows; ++k)
        for (i64 i = part.begin; i < part.end; ++i)
          whole_q.column(c)[i] += q.column(k)[i] * stack.column(c)[first + k];
  });
  whole_r = Columns::zeros(columns, rank_);
  for (i64 c = 0; c < rank_; ++c)
    std::copy_n(top.column(c), columns, whole_r.column(c));
  return whole_q;
}

QrUpdate::SmallSystem QrUpdate::system_for(int mode, double ridge) const {
  SmallSystem system;
  std::vector<i64> sizes;
  for (int m = 0; m < x_.order(); ++m)
    if (m != mode)
      sizes.push_back(decomposed_[static_cast<std::size_t>(m)].q.columns);
  const auto combinations = checked_product(sizes);
  const auto numbers = combinations ? checked_multiply(*combinations, rank_) : std::nullopt;
  if (!numbers)
    throw_error(Status::unsupported, "option 'solve' = qr at rank {} and order {}: too many combinations of columns",
                rank_, x_.order());
  system.k = {*combinations, rank_, std::vector<double>(static_cast<std::size_t>(*numbers), 1.0)};
  for (i64 c = 0; c < rank_; ++c)
    for (i64 j = 0, step = 1; j < *combinations; ++j, step = 1)
      for (int m = 0; m < x_.order(); ++m) {
        if (m == mode)
          continue;
        const Columns &r = decomposed_[static_cast<std::size_t>(m)].r;
        system.k.column(c)[j] *= r.column(c)[j / step % r.rows];
        step *= r.rows;
      }

  // Powers of two round nothing: how long a column is says nothing of whether it is needed.
  const i64 extra = ridge > 0 ? rank_ : 0;
  system.q = Columns::zeros(*combinations + extra, rank_);
  for (i64 c = 0; c < rank_; ++c) {
    double square = ridge;
    for (i64 j = 0; j < *combinations; ++j)
      square += system.k.column(c)[j] * system.k.column(c)[j];
    if (!std::isfinite(square))
      throw_error(Status::numerical, "mode {}: the factors overflowed: column {} of the Khatri-Rao product", mode, c);
    system.scale.push_back(square > 0 ? std::ldexp(1.0, -(std::ilogb(square) >> 1)) : 1.0);
    for (i64 j = 0; j < *combinations; ++j)
      system.q.column(c)[j] = system.k.column(c)[j] * system.scale.back();
    if (extra > 0)
      system.q.column(c)[*combinations + c] = std::sqrt(ridge) * system.scale.back();
  }
  system.r = decompose_qr(system.q);

  SingularValues singular = singular_values(system.r);
  system.u = std::move(singular.u);
  system.w = std::move(singular.w);
  system.s = std::move(singular.s);
  const double cutoff = static_cast<double>(rank_) * epsilon_of(ValueType::f64) * system.s.front();
  system.kept = std::count_if(system.s.begin(), system.s.end(), [&](double s) { return s > cutoff; });
  return system;
}

/// A combination's number has the column of the first mode's Q as its lowest digit.
void QrUpdate::stage_combinations(int mode, Range combinations) {
  i64 step = 1;
  for (int m = 0; m < x_.order(); ++m) {
    if (m == mode)
      continue;
    const Columns &q = decomposed_[static_cast<std::size_t>(m)].q;
    std::vector<double> rows(static_cast<std::size_t>(q.rows * rank_), 0.0);
    for (i64 c = 0; c < combinations.size(); ++c) {
      const double *column = q.column((combinations.begin + c) / step % q.columns);
      for (i64 i = 0; i < q.rows; ++i)
        rows[static_cast<std::size_t>(i * rank_ + c)] = column[i];
    }
    staged_.upload(m, {rows.data(), ValueType::f64, q.rows, rank_, rank_}, {});
    products_.changed(m);
    step *= q.columns;
  }
}

/// Rows z u s^+ w^T, the columns scaled back.
std::vector<double> QrUpdate::solve_rows(const SmallSystem &system, const std::vector<double> &z, i64 rows) const {
  const i64 n = system.r.rows;
  std::vector<double> a(static_cast<std::size_t>(rows * rank_), 0.0);
  parallel_ranges(backend_.threads(), rows, 256, [&](Range part) {
    for (i64 i = part.begin; i < part.end; ++i) {
      double *row = a.data() + i * rank_;
      const double *left = z.data() + i * n;
      for (i64 j = 0; j < system.kept; ++j) {
        double along = 0;
        for (i64 r = 0; r < n; ++r)
          along += left[r] * system.u.column(j)[r];
        along /= system.s[static_cast<std::size_t>(j)];
        for (i64 c = 0; c < rank_; ++c)
          row[c] += along * system.w.column(j)[c];
      }
      for (i64 c = 0; c < rank_; ++c)
        row[c] *= system.scale[static_cast<std::size_t>(c)];
    }
  });
  return a;
}

kernels::SolveRecord QrUpdate::update(int mode, const Replica &factors, Matrix product, double ridge) {
  for (int m = 0; m < x_.order(); ++m)
    if (m != mode)
      refresh(m, factors);
  const SmallSystem system = system_for(mode, ridge);
  const i64 n = system.r.rows;
  const Ranges &own = worker_.own(mode);
  i64 rows = 0;
  for (const Range &range : own)
    rows += range.size();

  std::vector<double> y(static_cast<std::size_t>(rows * rank_)); // the tensor times combinations
  std::vector<double> z(static_cast<std::size_t>(rows * n), 0.0), m(y.size(), 0.0);
  for (i64 begin = 0; begin < system.k.rows; begin += rank_) {
    const Range some{begin, std::min(begin + rank_, system.k.rows)};
    stage_combinations(mode, some);
    products_.mttkrp(mode, staged_.views(), product);
    for (i64 at = 0; const Range &range : own) {
      backend_.download(y.data() + at * rank_, product.slice(range.begin, range.end).data, range.size() * rank_ * 8);
      at += range.size();
    }
    parallel_ranges(backend_.threads(), rows, 256, [&](Range part) {
      for (i64 i = part.begin; i < part.end; ++i)
        for (i64 c = 0; c < some.size(); ++c) {
          const double value = y[static_cast<std::size_t>(i * rank_ + c)];
          for (i64 r = 0; r < n; ++r)
            z[static_cast<std::size_t>(i * n + r)] += value * system.q.column(r)[begin + c];
          for (i64 r = 0; r < rank_; ++r)
            m[static_cast<std::size_t>(i * rank_ + r)] += value * system.k.column(r)[begin + c];
        }
    });
  }
  for (int other = 0; other < x_.order(); ++other) // what was computed from the Q's is no product of the factors
    products_.changed(other);

  const std::vector<double> a = solve_rows(system, z, rows);
  for (i64 at = 0; const Range &range : own) {
    backend_.upload(factors[mode].slice(range.begin, range.end).data, a.data() + at * rank_, range.size() * rank_ * 8);
    backend_.upload(product.slice(range.begin, range.end).data, m.data() + at * rank_, range.size() * rank_ * 8);
    at += range.size();
  }
  const double smallest = n < rank_ ? 0 : system.s.back();
  const bool known = smallest > 0 && system.s.front() <= kernels::most_condition * smallest;
  const double condition = known ? system.s.front() / smallest : kernels::most_condition;
  return {static_cast<double>(system.kept), system.kept < rank_ ? 1.0 : 0.0, condition};
}

} // namespace td::solvers
