// Matrices and tensors for tests of the kernels: outputs begin as NaN, padding holds a sentinel that must stay.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu.hpp"
#include "kernels/kernels.hpp"
#include "kernels/reference/reference.hpp"
#include "unit/formats_random.hpp"

namespace td::test {

inline constexpr double padding_sentinel = -12345.0;

/// rows x cols with `pad` numbers between rows.
template <class T> class TestMatrix {
public:
  TestMatrix(i64 rows, i64 cols, i64 pad)
      : rows_(rows), cols_(cols), ld_(cols + pad),
        numbers_(static_cast<std::size_t>(rows * ld_), static_cast<T>(padding_sentinel)) {
    fill([](i64, i64) { return std::numeric_limits<T>::quiet_NaN(); });
  }
  static TestMatrix random(i64 rows, i64 cols, i64 pad, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<T> uniform(-1, 1);
    TestMatrix a(rows, cols, pad);
    a.fill([&](i64, i64) { return uniform(engine); });
    return a;
  }
  template <class F> void fill(F &&f) {
    for (i64 i = 0; i < rows_; ++i)
      for (i64 r = 0; r < cols_; ++r)
        at(i, r) = static_cast<T>(f(i, r));
  }
  TestMatrix magnitudes() const {
    TestMatrix a = *this;
    a.fill([&](i64 i, i64 r) { return std::abs(at(i, r)); });
    return a;
  }
  T &at(i64 i, i64 r) { return numbers_[static_cast<std::size_t>(i * ld_ + r)]; }
  const T &at(i64 i, i64 r) const { return numbers_[static_cast<std::size_t>(i * ld_ + r)]; }
  Matrix view() { return {numbers_.data(), value_type_of<T>, rows_, cols_, ld_}; }
  ConstMatrix view() const { return {numbers_.data(), value_type_of<T>, rows_, cols_, ld_}; }
  i64 rows() const { return rows_; }
  i64 cols() const { return cols_; }

  bool padding_untouched() const {
    for (i64 i = 0; i < rows_; ++i)
      for (i64 c = cols_; c < ld_; ++c)
        if (at(i, c) != static_cast<T>(padding_sentinel))
          return false;
    return true;
  }
  /// Bit for bit, padding included; NaN equals NaN.
  bool same_bits(const TestMatrix &other) const {
    return numbers_.size() == other.numbers_.size() &&
           std::memcmp(numbers_.data(), other.numbers_.data(), numbers_.size() * sizeof(T)) == 0;
  }

private:
  i64 rows_, cols_, ld_;
  std::vector<T> numbers_;
};

/// What results that are added to begin with in the rows asked for: at most 2.
template <class T> void set_before(TestMatrix<T> &out, Range rows) {
  for (i64 i = rows.begin; i < rows.end; ++i)
    for (i64 r = 0; r < out.cols(); ++r)
      out.at(i, r) = static_cast<T>((i + 2 * r) % 5 - 2);
}

template <class T> std::vector<ConstMatrix> views(const std::vector<TestMatrix<T>> &factors) {
  std::vector<ConstMatrix> v;
  for (const auto &f : factors)
    v.push_back(f.view());
  return v;
}

template <class T>
std::vector<TestMatrix<T>> random_factors(const std::vector<i64> &dims, i64 rank, i64 pad, unsigned seed) {
  std::vector<TestMatrix<T>> factors;
  for (const i64 d : dims)
    factors.push_back(TestMatrix<T>::random(d, rank, pad, seed++));
  return factors;
}

template <class T> std::vector<TestMatrix<T>> magnitudes(const std::vector<TestMatrix<T>> &factors) {
  std::vector<TestMatrix<T>> all;
  for (const auto &f : factors)
    all.push_back(f.magnitudes());
  return all;
}

/// Every stored form of one tensor. Values are positive whole numbers.
template <class T> struct Stored {
  std::vector<i64> dims;
  formats::Coo coo;
  formats::Blco blco;
  std::vector<formats::Sorted> sorted;
  std::vector<formats::Sorted> tiled; // up to order 4
  formats::Dense dense;               // only where asked for
  bool has_dense = false;

  Stored(CallerEntries<i64, T> entries, bool with_dense) : dims(entries.dims) {
    coo = formats::build_canonical(entries.view(), false, 1).coo;
    blco = formats::build_blco(coo.view(), 1);
    for (int m = 0; m < static_cast<int>(dims.size()); ++m)
      sorted.push_back(formats::build_sorted(coo.view(), m, 1));
    std::vector<int> bits;
    for (const i64 d : dims)
      bits.push_back(std::max(index_bits(d) - 2, 0));
    if (dims.size() <= 4)
      for (int m = 0; m < static_cast<int>(dims.size()); ++m)
        tiled.push_back(formats::build_sorted(formats::pack(coo.view(), 1), m, bits, 1));
    if (!with_dense)
      return;
    i64 size = 1;
    for (const i64 d : dims)
      size *= d;
    std::vector<T> full(static_cast<std::size_t>(size));
    for (i64 k = 0; k < coo.values.size(); ++k) {
      i64 at = 0;
      for (std::size_t m = dims.size(); m-- > 0;)
        at = at * dims[m] + coo.indices[m][k];
      full[static_cast<std::size_t>(at)] = coo.values.template as<T>()[k];
    }
    dense = formats::build_dense({dims, {}, value_type_of<T>, full.data()}, 1);
    has_dense = true;
  }

  /// The forms that MTTKRP in `mode` takes, with their names.
  std::vector<std::pair<const char *, kernels::TensorView>> views(int mode) const {
    std::vector<std::pair<const char *, kernels::TensorView>> all{
        {"coo", coo.view()}, {"blco", blco.view()}, {"sorted", sorted[static_cast<std::size_t>(mode)].view()}};
    if (!tiled.empty())
      all.emplace_back("tiled", tiled[static_cast<std::size_t>(mode)].view());
    if (has_dense)
      all.emplace_back("dense", dense.view());
    return all;
  }
};

inline const std::vector<i64> test_ranks{1, 2, 3, 5, 8, 10, 16, 17, 32, 50, 70};

} // namespace td::test
