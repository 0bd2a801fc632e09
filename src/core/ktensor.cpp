#include "core/ktensor.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/columns.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/relayout.hpp"
#include "core/strides.hpp"

namespace td {

namespace {

void check_mode(const Ktensor &k, int mode) {
  if (mode < 0 || mode >= k.order())
    throw_error(Status::shape, "mode = {}: expected 0 .. {}", mode, k.order() - 1);
}

/// Calls f(row) for each row of a matrix: columns are taken together, since memory has a row's elements side by side.
template <class F> void for_rows(Matrix a, int threads, F &&f) {
  parallel_ranges(threads, a.rows, rows_worth_a_thread(a.cols), [&](Range rows) {
    dispatch(a.type, [&](auto zero) {
      for (i64 i = rows.begin; i < rows.end; ++i)
        f(a.row<decltype(zero)>(i));
    });
  });
}

/// Changes the signs of some columns.
void negate_columns(Matrix a, const std::vector<char> &some, int threads) {
  if (std::find(some.begin(), some.end(), 1) == some.end())
    return;
  for_rows(a, threads, [&](auto *row) {
    for (std::size_t r = 0; r < some.size(); ++r)
      row[r] = some[r] != 0 ? -row[r] : row[r];
  });
}

/// Marks the columns whose entry of largest magnitude (the first of them) is negative.
std::vector<char> point_down(Matrix a, RowBlock block, const Meeting &others) {
  const auto cols = static_cast<std::size_t>(a.cols);
  struct Largest {
    double value = 0;
    i64 row = 0;
    bool comes_before(const Largest &other) const {
      return std::abs(value) != std::abs(other.value) ? std::abs(value) > std::abs(other.value) : row < other.row;
    }
  };
  std::vector<Largest> all(cols, {0, a.rows});
  std::mutex mutex;
  parallel_ranges(others.threads, a.rows, rows_worth_a_thread(a.cols), [&](Range rows) {
    std::vector<Largest> own(cols, {0, a.rows});
    dispatch(a.type, [&](auto zero) {
      for (i64 i = rows.begin; i < rows.end; ++i) {
        const auto *row = a.row<decltype(zero)>(i);
        for (std::size_t r = 0; r < cols; ++r)
          if (std::abs(static_cast<double>(row[r])) > std::abs(own[r].value))
            own[r] = {static_cast<double>(row[r]), i};
      }
    });
    const std::lock_guard lock(mutex);
    for (std::size_t r = 0; r < cols; ++r)
      all[r] = own[r].comes_before(all[r]) ? own[r] : all[r];
  });
  std::vector<double> here(cols);
  std::transform(all.begin(), all.end(), here.begin(), [](const Largest &x) { return x.value; });
  std::vector<double> largest(cols), first(cols, 0.0);
  std::transform(here.begin(), here.end(), largest.begin(), [](double x) { return std::abs(x); });
  if (others.max)
    others.max(largest);
  // The first of the blocks that have the largest magnitude decides: its number is the larger, and odd where it is
  // negative.
  for (std::size_t r = 0; r < cols; ++r)
    if (std::abs(here[r]) == largest[r])
      first[r] = 2 * static_cast<double>(block.count - block.number) + (here[r] < 0 ? 1 : 0);
  if (others.max)
    others.max(first);
  std::vector<char> down(cols);
  std::transform(first.begin(), first.end(), down.begin(), [](double x) { return std::fmod(x, 2) == 1; });
  return down;
}

} // namespace

Ktensor::Ktensor(std::span<const i64> dims, i64 rank, ValueType type, const MemoryBudget &budget, RowBlock block)
    : Ktensor(unfilled(dims, rank, type, budget, block)) {
  for (ValueBuffer &factor : factors_)
    if (factor.size() > 0)
      std::memset(factor.data(), 0, static_cast<std::size_t>(factor.bytes()));
}

Ktensor Ktensor::unfilled(std::span<const i64> dims, i64 rank, ValueType type, const MemoryBudget &budget,
                          RowBlock block) {
  Ktensor k;
  k.dims_.assign(dims.begin(), dims.end());
  k.block_ = block;
  k.type_ = type;
  if (k.order() < min_order || k.order() > max_order)
    throw_error(Status::shape, "order = {}: expected {} .. {}", k.order(), min_order, max_order);
  if (rank < 1)
    throw_error(Status::shape, "rank = {}: expected at least 1", rank);
  for (int m = 0; m < k.order(); ++m)
    if (const i64 d = dims[static_cast<std::size_t>(m)]; d < 1)
      throw_error(Status::shape, "dims[{}] = {}: expected at least 1", m, d);
  budget.require(fmt::format("a ktensor of rank {}", rank), need(dims, rank, type, block));
  for (int m = 0; m < k.order(); ++m) {
    const i64 d = k.rows(m).size();
    const auto count = checked_multiply(d, rank);
    if (!count)
      throw_error(Status::host_memory, "out of host memory: {} x {} elements for factor {}", d, rank, m);
    k.factors_.emplace_back(type, *count, "a factor matrix");
  }
  k.labels_ = Labels(k.order());
  k.rank_ = rank;
  k.weights_.assign(static_cast<std::size_t>(rank), 1.0);
  return k;
}

MemoryNeed Ktensor::need(std::span<const i64> dims, i64 rank, ValueType type, RowBlock block) {
  double rows = 0;
  for (const i64 d : dims)
    rows += static_cast<double>(block.of(d).size());
  MemoryNeed need;
  need.add("factors", rows * static_cast<double>(rank) * static_cast<double>(size_of(type)));
  need.add("weights", 8 * static_cast<double>(rank));
  return need;
}

Ktensor Ktensor::copy(const MemoryBudget &budget) const { return convert(type_, budget); }

Ktensor Ktensor::convert(ValueType type, const MemoryBudget &budget) const {
  if (order() == 0)
    return {};
  Ktensor out = unfilled(dims_, rank_, type, budget, block_);
  out.weights_ = weights_;
  out.labels_ = labels_;
  for (std::size_t m = 0; m < factors_.size(); ++m) {
    dispatch(type_, [&](auto from_zero) {
      dispatch(type, [&](auto to_zero) {
        using From = decltype(from_zero);
        using To = decltype(to_zero);
        const From *from = factors_[m].as<From>();
        To *to = out.factors_[m].as<To>();
        for (i64 e = 0; e < factors_[m].size(); ++e) {
          to[e] = static_cast<To>(from[e]);
          if (!std::isfinite(to[e]))
            throw_error(Status::argument, "factor {}: entry at row {}, column {} is {}: too large for {}", m,
                        rows(static_cast<int>(m)).begin + e / rank_, e % rank_, from[e], name_of(type));
        }
      });
    });
  }
  return out;
}

Ktensor Ktensor::cut(RowBlock block) const {
  Ktensor out = unfilled(dims_, rank_, type_, {}, block);
  out.weights_ = weights_;
  out.labels_ = labels_;
  for (int m = 0; m < order(); ++m) {
    const Range rows = out.rows(m);
    if (rows.size() > 0)
      std::memcpy(out.factor(m).data, factor(m).slice(rows.begin, rows.end).data,
                  static_cast<std::size_t>(out.factors_[static_cast<std::size_t>(m)].bytes()));
  }
  return out;
}

Matrix Ktensor::factor(int mode) noexcept {
  const auto m = static_cast<std::size_t>(mode);
  return {factors_[m].data(), type_, rows(mode).size(), rank_, rank_};
}

ConstMatrix Ktensor::factor(int mode) const noexcept {
  const auto m = static_cast<std::size_t>(mode);
  return {factors_[m].data(), type_, rows(mode).size(), rank_, rank_};
}

void Ktensor::set_factor(int mode, const void *column_major, i64 ld) {
  check_mode(*this, mode);
  const Matrix a = factor(mode);
  require_columns(fmt::format("factor {}", mode), type_, a.rows, rank_, ld);
  // Read by columns, a column-major matrix is one of contiguous rows.
  const ConstMatrix columns(column_major, type_, rank_, a.rows, ld);
  if (const i64 at = first_not_finite(columns, 1); at < a.rows * rank_)
    throw_error(Status::argument, "factor {}: entry at row {}, column {} is not finite", mode, at % a.rows,
                at / a.rows);
  gather_transposed(columns, nullptr, a, {0, a.rows});
}

void Ktensor::get_factor(int mode, void *column_major, i64 ld) const {
  check_mode(*this, mode);
  const ConstMatrix a = factor(mode);
  require_columns(fmt::format("factor {}", mode), type_, a.rows, rank_, ld);
  scatter_transposed(a, nullptr, {column_major, type_, rank_, a.rows, ld}, {0, a.rows});
}

void Ktensor::normalize(const Meeting &others) {
  std::vector<Scaled> lengths(weights_.begin(), weights_.end());
  std::vector<ColumnScales> scales;
  std::vector<std::vector<double>> norms;
  for (int m = 0; m < order(); ++m) {
    scales.push_back(column_scales(factor(m), plain_exponent, others));
    norms.push_back(scaled_norms(factor(m), scales.back(), others));
    for (std::size_t r = 0; r < lengths.size(); ++r)
      lengths[r] = lengths[r] * Scaled(norms.back()[r], scales.back().exponent[r]);
  }
  for (std::size_t r = 0; r < lengths.size(); ++r) { // before anything changes
    if (!std::isfinite(lengths[r].value()))
      throw_error(Status::numerical, "the weight of component {} overflows: about 2^{}", r, lengths[r].exponent());
  }
  for (int m = 0; m < order(); ++m) {
    const auto mode = static_cast<std::size_t>(m);
    for_rows(factor(m), others.threads, [&]<class T>(T *row) {
      for (std::size_t r = 0; r < lengths.size(); ++r) {
        if (norms[mode][r] > 0)
          row[r] = static_cast<T>(static_cast<double>(row[r]) * scales[mode].factor[r] / norms[mode][r]);
      }
    });
  }
  std::transform(lengths.begin(), lengths.end(), weights_.begin(), [](const Scaled &s) { return s.value(); });
}

void Ktensor::arrange(const Meeting &others) {
  normalize(others);
  std::vector<char> negative(weights_.size());
  std::transform(weights_.begin(), weights_.end(), negative.begin(), [](double w) { return w < 0; });
  for (double &w : weights_)
    w = w < 0 ? -w : w;
  negate_columns(factor(0), negative, others.threads);
  std::vector<std::size_t> sequence(weights_.size());
  std::iota(sequence.begin(), sequence.end(), std::size_t{0});
  std::stable_sort(sequence.begin(), sequence.end(),
                   [&](std::size_t a, std::size_t b) { return weights_[a] > weights_[b]; });
  const auto permute = [&](auto *row, auto &scratch) {
    for (std::size_t r = 0; r < sequence.size(); ++r)
      scratch[r] = row[sequence[r]];
    std::copy(scratch.begin(), scratch.end(), row);
  };
  std::vector<double> scratch(weights_.size());
  permute(weights_.data(), scratch);
  if (std::is_sorted(sequence.begin(), sequence.end()))
    return;
  for (int m = 0; m < order(); ++m) {
    const Matrix a = factor(m);
    parallel_ranges(others.threads, a.rows, rows_worth_a_thread(a.cols), [&](Range rows) {
      dispatch(type_, [&](auto zero) {
        using T = decltype(zero);
        std::vector<T> row(weights_.size());
        for (i64 i = rows.begin; i < rows.end; ++i)
          permute(a.row<T>(i), row);
      });
    });
  }
}

void Ktensor::fixsigns(const Meeting &others) {
  std::vector<std::vector<char>> down; // [mode][column]
  for (int m = 0; m < order(); ++m)
    down.push_back(point_down(factor(m), block_, others));
  for (std::size_t r = 0; r < weights_.size(); ++r) {
    int without_partner = 0; // one mode that points down is left as it is where they are an odd number
    for (const auto &of_mode : down)
      without_partner ^= of_mode[r];
    for (std::size_t m = down.size(); m-- > 0 && without_partner != 0;)
      without_partner ^= std::exchange(down[m][r], 0);
  }
  for (int m = 0; m < order(); ++m)
    negate_columns(factor(m), down[static_cast<std::size_t>(m)], others.threads);
}

std::vector<Leader> leaders(const Ktensor &k, int mode, i64 component, i64 most) {
  const auto before = [](const Leader &a, const Leader &b) {
    const double size_a = std::abs(a.value), size_b = std::abs(b.value);
    return size_a != size_b ? size_a > size_b : a.index < b.index;
  };
  std::vector<Leader> heap; // of the leaders so far, the last of them in front
  const ConstMatrix a = k.factor(mode);
  dispatch(a.type, [&](auto zero) {
    for (i64 i = 0; i < a.rows && most > 0; ++i) {
      const Leader next{i, static_cast<double>(a.row<decltype(zero)>(i)[component])};
      const bool full = static_cast<i64>(heap.size()) == most;
      if (next.value == 0 || (full && !before(next, heap.front())))
        continue;
      if (full) {
        std::pop_heap(heap.begin(), heap.end(), before);
        heap.pop_back();
      }
      heap.push_back(next);
      std::push_heap(heap.begin(), heap.end(), before);
    }
  });
  std::sort_heap(heap.begin(), heap.end(), before);
  return heap;
}

} // namespace td
