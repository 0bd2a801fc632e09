// Matrices and tensors for tests of the kernels: outputs begin as NaN, padding holds a sentinel that must stay.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/backend.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/reference/backend.hpp"
#include "unit/formats_random.hpp"

namespace td::test {

inline constexpr double padding_sentinel = -12345.0;

/// A CPU backend whose threads stay for the next case: to start them takes longer than most kernels here.
inline const std::shared_ptr<kernels::Backend> &cpu_backend(int threads) {
  static std::map<int, std::shared_ptr<kernels::Backend>> all;
  auto &backend = all[threads];
  if (backend == nullptr)
    backend = kernels::cpu::make_backend(threads);
  return backend;
}

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

/// 60 % of the entries have index 17 in mode 0, and mode 1 is uneven: rows are split between workers, who own several
/// ranges of them.
inline CallerEntries<i64, double> heavy_entries() {
  auto entries = random_entries<i64, double>({40, 300, 700}, 4000, 0, 8);
  for (std::size_t k = 0; k < entries.values.size(); ++k) {
    if (k % 5 < 3)
      entries.columns[0][k] = 17;
    entries.columns[1][k] = entries.columns[1][k] * entries.columns[1][k] / 300;
  }
  return entries;
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
    const formats::Packed packed = packed_of(coo);
    blco = formats::build_blco(packed_of(coo), 1);
    for (int m = 0; m < static_cast<int>(dims.size()); ++m)
      sorted.push_back(sorted_of(packed, m));
    std::vector<int> bits;
    for (const i64 d : dims)
      bits.push_back(std::max(index_bits(d) - 2, 0));
    if (dims.size() <= 4)
      for (int m = 0; m < static_cast<int>(dims.size()); ++m)
        tiled.push_back(formats::build_sorted(packed, m, bits, 1));
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

inline const std::vector<i64> test_ranks =
    light() ? std::vector<i64>{1, 3, 16, 17, 70} : std::vector<i64>{1, 2, 3, 5, 8, 10, 16, 17, 32, 50, 70};

/// A host matrix in a backend's memory, padding and all.
template <class T> class Placed {
public:
  Placed(kernels::Backend &backend, const TestMatrix<T> &a)
      : backend_(backend), copy_(a), memory_(backend, bytes(a), "a test"), view_(copy_.view()) {
    backend.upload(memory_.data(), &copy_.at(0, 0), memory_.bytes());
    view_.data = memory_.data();
  }
  Matrix view() const { return view_; }
  TestMatrix<T> download() {
    backend_.download(&copy_.at(0, 0), memory_.data(), memory_.bytes());
    return copy_;
  }

private:
  static i64 bytes(const TestMatrix<T> &a) { return a.rows() * a.view().ld * static_cast<i64>(sizeof(T)); }
  kernels::Backend &backend_;
  TestMatrix<T> copy_;
  kernels::DeviceBuffer memory_;
  Matrix view_;
};

/// gather_transposed, scatter_transposed and set_zero against their definitions.
template <class T> void check_transposed(kernels::Backend &backend) {
  for (const i64 rank : {i64{1}, i64{7}, i64{32}, i64{65}})
    for (const i64 rows : {i64{1}, i64{33}, i64{2500}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank);
      const i64 all = 2 * rows + 1;
      std::vector<i64> list(static_cast<std::size_t>(rows));
      for (i64 k = 0; k < rows; ++k)
        list[static_cast<std::size_t>(k)] = 2 * k + k % 2;
      kernels::DeviceBuffer on_list(backend, rows * 8, "a test");
      backend.upload(on_list.data(), list.data(), on_list.bytes());
      const auto columns = TestMatrix<T>::random(rank, all, 3, 61);
      Placed<T> on_columns(backend, columns);
      for (const bool listed : {false, true}) {
        const auto row = [&](i64 k) { return listed ? list[static_cast<std::size_t>(k)] : k; };
        const i64 *rows_there = listed ? static_cast<const i64 *>(on_list.data()) : nullptr;
        Placed<T> on_tall(backend, TestMatrix<T>(rows, rank, 2));
        backend.gather_transposed(on_columns.view(), rows_there, on_tall.view());
        const auto tall = on_tall.download();
        for (i64 k = 0; k < rows; ++k)
          for (i64 r = 0; r < rank; ++r)
            ASSERT_EQ(tall.at(k, r), columns.at(r, row(k)));
        EXPECT_TRUE(tall.padding_untouched());

        Placed<T> on_back(backend, TestMatrix<T>::random(rank, all, 1, 62));
        backend.set_zero(on_back.view());
        backend.scatter_transposed(on_tall.view(), rows_there, on_back.view());
        const auto back = on_back.download();
        std::vector<bool> written(static_cast<std::size_t>(all), false);
        for (i64 k = 0; k < rows; ++k)
          written[static_cast<std::size_t>(row(k))] = true;
        for (i64 r = 0; r < rank; ++r)
          for (i64 i = 0; i < all; ++i)
            ASSERT_EQ(back.at(r, i), written[static_cast<std::size_t>(i)] ? columns.at(r, i) : T{0});
        EXPECT_TRUE(back.padding_untouched());
      }
    }
}

/// gather_rows and add_rows against their definitions.
template <class T> void check_rows_of_lists(kernels::Backend &backend) {
  for (const i64 rank : {i64{1}, i64{7}, i64{32}})
    for (const i64 rows : {i64{0}, i64{1}, i64{2500}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank);
      std::vector<i64> list(static_cast<std::size_t>(rows));
      for (i64 k = 0; k < rows; ++k)
        list[static_cast<std::size_t>(k)] = 2 * (rows - k) - k % 2;
      const kernels::DeviceBuffer on_list(backend, rows * 8, "a test");
      if (rows > 0)
        backend.upload(on_list.data(), list.data(), on_list.bytes());
      const auto *const there = static_cast<const i64 *>(on_list.data());
      const auto all = TestMatrix<T>::random(2 * rows + 1, rank, 3, 63);
      Placed<T> on_all(backend, all), on_some(backend, TestMatrix<T>(rows, rank, 2));
      backend.gather_rows(on_all.view(), there, on_some.view());
      const auto some = on_some.download();
      backend.add_rows(on_some.view(), there, on_all.view());
      const auto twice = on_all.download();
      for (i64 r = 0; r < rank; ++r) {
        std::vector<T> expected;
        for (i64 i = 0; i < 2 * rows + 1; ++i)
          expected.push_back(all.at(i, r));
        for (i64 k = 0; k < rows; ++k) {
          const i64 row = list[static_cast<std::size_t>(k)];
          ASSERT_EQ(some.at(k, r), all.at(row, r));
          expected[static_cast<std::size_t>(row)] += all.at(row, r);
        }
        for (i64 i = 0; i < 2 * rows + 1; ++i)
          ASSERT_EQ(twice.at(i, r), expected[static_cast<std::size_t>(i)]);
      }
      EXPECT_TRUE(some.padding_untouched());
      EXPECT_TRUE(twice.padding_untouched());
    }
}

template <class T> void check_first_not_finite(kernels::Backend &backend) {
  const auto first = [&](const TestMatrix<T> &a) {
    Placed<T> placed(backend, a);
    kernels::DeviceBuffer at(backend, 8, "a test");
    backend.first_not_finite(placed.view(), static_cast<i64 *>(at.data()));
    i64 found = -1;
    backend.download(&found, at.data(), 8);
    return found;
  };
  for (const i64 pad : {i64{0}, i64{3}})
    for (const auto &[rows, cols] : {std::pair<i64, i64>{1, 1}, {3, 100000}, {20000, 7}}) {
      auto a = TestMatrix<T>::random(rows, cols, pad, 71);
      EXPECT_EQ(first(a), rows * cols);
      a.at(rows - 1, cols - 1) = std::numeric_limits<T>::infinity();
      EXPECT_EQ(first(a), rows * cols - 1);
      a.at(rows / 2, cols / 3) = std::numeric_limits<T>::quiet_NaN();
      EXPECT_EQ(first(a), rows / 2 * cols + cols / 3);
      a.at(0, 0) = -std::numeric_limits<T>::infinity();
      EXPECT_EQ(first(a), 0);
    }
}

} // namespace td::test
