// What goes in comes out: entries, dense arrays and files.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/planted.hpp"
#include "support/temporary.hpp"

namespace {

using namespace tdtest;

/// The stored entries, in td's order.
Entries entries_of(const td_tensor *x) {
  Entries e(dims_of(x));
  const auto nnz = static_cast<std::size_t>(tensor_nnz(x));
  std::vector<void *> pointers;
  for (auto &column : e.indices) {
    column.resize(nnz);
    pointers.push_back(column.data());
  }
  e.values.resize(nnz);
  check(td_tensor_get_entries(x, TD_I64, pointers.data(), 0, TD_F64, e.values.data()));
  return e;
}

std::map<std::vector<int64_t>, double> by_coordinate(const Entries &e) {
  std::map<std::vector<int64_t>, double> m;
  for (int64_t k = 0; k < e.nnz(); ++k)
    m[e.coordinate(k)] += e.values[static_cast<std::size_t>(k)];
  return m;
}

std::vector<double> dense_of(const td_tensor *x, int64_t cells) {
  std::vector<double> v(static_cast<std::size_t>(cells), std::nan(""));
  check(td_tensor_get_dense(x, nullptr, TD_F64, v.data()));
  return v;
}

class RoundTrips : public testing::TestWithParam<std::string> {
protected:
  Tensor tensor_of(const Entries &e, td_type type = TD_F64) {
    return make_tensor(context_, GetParam(), e, {type, TD_I64, 0});
  }
  Context context_ = make_context("cpu:2");
  Random random_{53};
};

TEST_P(RoundTrips, EntriesComeBackOnceAndInOneOrder) {
  for (const td_type type : {TD_F32, TD_F64}) {
    const Entries given = distinct_entries(random_, {70, 9, 300, 4}, 900, type);
    const Entries came = entries_of(tensor_of(given, type));
    EXPECT_EQ(came.nnz(), given.nnz());
    EXPECT_EQ(by_coordinate(came), by_coordinate(given));
    const Entries shuffled = entries_of(tensor_of(given.permuted(random_permutation(random_, 900)), type));
    EXPECT_EQ(shuffled.indices, came.indices);
    EXPECT_EQ(shuffled.values, came.values);
  }
}

// Small whole numbers: their sums are exact, so the order of summation cannot show.
TEST_P(RoundTrips, RepeatedEntriesComeBackSummed) {
  Entries given({4, 5, 6});
  for (int k = 0; k < 600; ++k)
    given.add({random_.below(4), random_.below(5), random_.below(6)}, static_cast<double>(random_.below(100) - 50));
  const Tensor x = tensor_of(given);
  const auto expected = by_coordinate(given);
  EXPECT_EQ(by_coordinate(entries_of(x)), expected);
  EXPECT_EQ(tensor_nnz(x), static_cast<int64_t>(expected.size()));
}

TEST_P(RoundTrips, WideIndicesComeBack) {
  Entries given({int64_t{1} << 40, int64_t{1} << 62, (int64_t{1} << 20) + 5, 3}); // 125 bits: two words
  for (int k = 0; k < 200; ++k) {
    std::vector<int64_t> c;
    for (const int64_t d : given.dims)
      c.push_back(k % 5 == 0 ? d - 1 - random_.below(2) : random_.below(d));
    given.add(c, k + 1);
  }
  // Columns as they are: make_sparse's go through double, which does not hold 62 bits.
  std::vector<const void *> pointers;
  for (const auto &column : given.indices)
    pointers.push_back(column.data());
  const Options options{{"format", GetParam()}};
  const Tensor x = make<Tensor>(td_tensor_create, context_, 4, given.dims.data(), 200, TD_I64, pointers.data(), 0,
                                TD_F64, given.values.data(), TD_HOST, options);
  EXPECT_EQ(by_coordinate(entries_of(x)), by_coordinate(given));
}

TEST_P(RoundTrips, DenseCopyHasTheEntriesAndZeros) {
  const Entries given = distinct_entries(random_, {7, 6, 5}, 60, TD_F64);
  const auto expected = by_coordinate(given);
  const auto came = dense_of(tensor_of(given), 210);
  for (int64_t cell = 0; cell < 210; ++cell) {
    const auto it = expected.find({cell % 7, cell / 7 % 6, cell / 42});
    EXPECT_EQ(came[static_cast<std::size_t>(cell)], it == expected.end() ? 0.0 : it->second) << "cell " << cell;
  }
}

TEST_P(RoundTrips, FactsOfEntries) {
  Entries e({5, 5});
  e.add({0, 0}, 3);
  e.add({1, 2}, -4);
  e.add({4, 4}, 12);
  const Tensor x = tensor_of(e);
  EXPECT_EQ(tensor_norm(x), 13);
  for (const auto &[key, expected] : {std::pair{"norm", 13.0}, {"min", -4.0}, {"max", 12.0}, {"sum", 11.0}})
    EXPECT_EQ(get<double>(td_tensor_get_f64, x, key), expected) << key;
}

TEST_P(RoundTrips, SparseFiles) {
  const TemporaryFolder folder;
  for (const td_type type : {TD_F32, TD_F64}) {
    Entries given = distinct_entries(random_, {40, 30, 20}, 500, type);
    given.values[0] = type == TD_F32 ? std::numeric_limits<float>::denorm_min() : 5e-324;
    given.values[1] = rounded(0.1, type);
    given.values[2] = rounded(-1e30 / 3, type);
    given.indices[0][3] = 39; // the largest index of each mode is there, from which FROSTT takes the dims
    given.indices[1][3] = 29;
    given.indices[2][3] = 19;
    const Tensor x = tensor_of(given, type);
    const Entries expected = entries_of(x);
    for (const char *name : {"x.tns", "x.tns.gz", "x.txt", "x.txt.gz", "x.tdb"}) {
      const std::string file = folder.file(name);
      check(td_tensor_write(x, file.c_str(), nullptr));
      const Options as{{"value_type", type == TD_F32 ? "f32" : "f64"}, {"format", GetParam()}};
      const Tensor back = make<Tensor>(td_tensor_read, context_, file.c_str(), as);
      const Entries came = entries_of(back);
      EXPECT_EQ(came.dims, expected.dims) << name;
      EXPECT_EQ(came.indices, expected.indices) << name;
      EXPECT_EQ(came.values, expected.values) << name;
      EXPECT_FALSE(tensor_str(back, "source").empty()) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RoundTrips, testing::Values("coo", "blco", "sorted"),
                         [](const auto &info) { return info.param; });

class DenseRoundTrips : public testing::TestWithParam<td_type> {
protected:
  Context context_ = make_context("cpu");
  Random random_{59};
};

TEST_P(DenseRoundTrips, Files) {
  const TemporaryFolder folder;
  const Entries cells = random_cells(random_, {6, 5, 4}, GetParam());
  const Tensor x = make_dense(context_, cells, GetParam());
  for (const char *name : {"x.npy", "x.tdb"}) {
    const std::string file = folder.file(name);
    check(td_tensor_write(x, file.c_str(), nullptr));
    const Tensor back = make<Tensor>(td_tensor_read, context_, file.c_str(), nullptr);
    EXPECT_EQ(tensor_str(back, "format"), "dense") << name;
    td_type type = 0;
    check(td_tensor_type(back, &type));
    EXPECT_EQ(type, GetParam()) << name;
    EXPECT_EQ(dense_of(back, 120), cells.values) << name;
  }
}

TEST_P(DenseRoundTrips, KtensorFiles) {
  const TemporaryFolder folder;
  const Factors factors = random_factors(random_, {6, 5, 4}, 3, GetParam());
  const Ktensor k = make_ktensor(context_, factors, GetParam(), {0.1, 1e-300, 7});
  for (const auto &[name, format] :
       {std::pair{"m.tdb", "auto"}, {"m.txt", "auto"}, {"m.txt.gz", "auto"}, {"folder", "splatt"}}) {
    const std::string file = folder.file(name);
    check(td_ktensor_write(k, file.c_str(), Options{{"file_format", format}}));
    const Ktensor back = make<Ktensor>(td_ktensor_read, context_, file.c_str());
    EXPECT_EQ(factors_of(back).a, factors.a) << name;
    EXPECT_EQ(weights_of(back), weights_of(k)) << name;
  }
}

// get_dense of what ktensor_full gives, values_at and the oracle are one tensor.
TEST_P(DenseRoundTrips, FullModelIsOneTensor) {
  const Factors factors = random_factors(random_, {6, 5, 4}, 3, GetParam());
  const std::vector<double> weights{2, -0.5, 1};
  const Ktensor k = make_ktensor(context_, factors, GetParam(), weights);
  const Bounded expected = oracle_full(factors, weights);
  const Array full(GetParam(), int64_t{120});
  check(td_ktensor_full(k, nullptr, GetParam(), full.data()));
  EXPECT_TRUE(within_bound(full.values(), expected, GetParam()));

  const std::vector<int64_t> dims{6, 5, 4}, c_order{20, 4, 1};
  const Array transposed(GetParam(), int64_t{120});
  check(td_ktensor_full(k, c_order.data(), GetParam(), transposed.data()));
  for (int64_t cell = 0; cell < 120; ++cell)
    EXPECT_EQ(transposed.get(cell % 6 * 20 + cell / 6 % 5 * 4 + cell / 30), full.get(cell)) << "cell " << cell;

  const Tensor x = make<Tensor>(td_tensor_create_dense, context_, 3, dims.data(), c_order.data(), GetParam(),
                                transposed.data(), TD_HOST, nullptr);
  EXPECT_EQ(dense_of(x, 120), full.values());
  const Array again(GetParam(), int64_t{120});
  check(td_tensor_get_dense(x, c_order.data(), GetParam(), again.data()));
  EXPECT_EQ(again.values(), transposed.values());
}

INSTANTIATE_TEST_SUITE_P(All, DenseRoundTrips, testing::Values(TD_F32, TD_F64),
                         [](const auto &info) { return info.param == TD_F32 ? "f32" : "f64"; });

} // namespace
