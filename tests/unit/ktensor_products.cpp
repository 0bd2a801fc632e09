// Norms, inner products, values and matches of ktensors, against sums over all entries.
#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"
#include "unit/ktensor_make.hpp"

namespace {

using namespace td;
using namespace td::test;

constexpr unsigned seed = 7;

double value_at(const Ktensor &k, const std::vector<i64> &coordinate) {
  std::vector<const void *> columns;
  for (const i64 &index : coordinate)
    columns.push_back(&index);
  double value = 0;
  values_at(k, {k.dims(), 1, IndexType::i64, columns.data(), 0, ValueType::f64, nullptr}, &value);
  return value;
}

TEST(KtensorProducts, ValuesByHand) {
  // 2 * (1, 2) x (3, 4) + 10 * (1, 0) x (0, 1)
  const Ktensor k = make_ktensor({2, 2}, {2, 10}, {{1, 2, 1, 0}, {3, 4, 0, 1}});
  EXPECT_EQ(full_array(k), (std::vector<double>{6, 12, 18, 16}));
  EXPECT_EQ(k.norm(), std::sqrt(36 + 144 + 324 + 256.0));
  const std::vector<i64> at{1, 1};
  EXPECT_EQ(value_at(k, at), 16);
}

TEST(KtensorProducts, FullHonoursStrides) {
  const Ktensor k = make_ktensor({2, 2}, {2, 10}, {{1, 2, 1, 0}, {3, 4, 0, 1}});
  std::vector<float> out(8, -1.0F);
  const std::vector<i64> strides{4, 2}; // second index faster, with gaps
  full(k, strides, ValueType::f32, out.data());
  EXPECT_EQ(out, (std::vector<float>{6, -1, 18, -1, 12, -1, 16, -1}));
  const std::vector<i64> folded{1, 0};
  EXPECT_THROW(full(k, folded, ValueType::f32, out.data()), Error);
}

TEST(KtensorProducts, AgreeWithSumsOverAllEntries) {
  const std::vector<i64> dims{3, 70, 2, 4}; // 70: more than one tile of rows
  const Ktensor a = random_ktensor(dims, 3, seed);
  const Ktensor b = random_ktensor(dims, 5, seed + 1);
  const auto fa = full_array(a);
  const auto fb = full_array(b);
  double ab = 0;
  for (std::size_t e = 0; e < fa.size(); ++e)
    ab += fa[e] * fb[e];
  // About 1680 terms below 15 and a handful of roundings each: 1680 * 15 * 10 * 2^-53.
  EXPECT_NEAR(dot(a, b), ab, 3e-11);
  EXPECT_NEAR(a.norm(), length(fa), 3e-11);
  std::size_t e = 0;
  for (i64 l = 0; l < 4; ++l) {
    for (i64 k = 0; k < 2; ++k) {
      for (i64 j = 0; j < 70; ++j) {
        for (i64 i = 0; i < 3; ++i) {
          const std::vector<i64> at{i, j, k, l};
          EXPECT_NEAR(value_at(a, at), fa[e++], 1e-15);
        }
      }
    }
  }
}

TEST(KtensorProducts, NothingIsNaNAtTheEndsOfTheRange) {
  // 1e300 * 1e300 overflows on the way to 1e300 * 1e300 * 0 = 0, and to 1e300 * 1e300 * 1e-300 = 1e300.
  const Ktensor k = make_ktensor({1, 2, 2}, {1e300, -1e300}, {{1e300, 1e300}, {0, 1e-300, 0, 2e-300}, {1, 0, 1, 0}});
  const auto f = full_array(k);
  EXPECT_EQ(f[0], 0);
  EXPECT_NEAR(f[1] / -1e300, 1, 1e-15);
  EXPECT_EQ(f[2], 0);
  EXPECT_EQ(f[3], 0);
  EXPECT_NEAR(k.norm() / 1e300, 1, 1e-15);
  const Ktensor tiny = make_ktensor({1, 1}, {1e-300}, {{1e-200}, {1e300}});
  EXPECT_NEAR(tiny.norm() / 1e-200, 1, 1e-15);
  EXPECT_EQ(score(k, k, true).value, score(k, k, true).value);
  EXPECT_EQ(dot(k, k), std::numeric_limits<double>::infinity()); // 1e600: the sum itself is out of range
}

TEST(KtensorProducts, ValuesAtChecksIndicesInTheCallersBase) {
  const Ktensor k = make_ktensor({2, 2}, {2, 10}, {{1, 2, 1, 0}, {3, 4, 0, 1}});
  const std::int32_t rows[] = {1, 2}, cols[] = {2, 2}, bad[] = {1, 3};
  const void *good_indices[] = {rows, cols};
  EntriesView view{k.dims(), 2, IndexType::i32, good_indices, 1, ValueType::f64, nullptr};
  double values[2];
  values_at(k, view, values);
  EXPECT_EQ(values[0], 18);
  EXPECT_EQ(values[1], 16);
  const void *bad_indices[] = {rows, bad};
  view.indices = bad_indices;
  try {
    values_at(k, view, values);
    ADD_FAILURE();
  } catch (const Error &e) {
    EXPECT_EQ(e.status(), Status::index);
    EXPECT_STREQ(e.what(), "entry 2, mode 2 (counting from 1): index 3 outside 1..2");
  }
}

TEST(KtensorScore, FindsComponentsInAnyOrder) {
  const std::vector<i64> dims{5, 6, 7};
  const Ktensor a = random_ktensor(dims, 4, seed);
  Ktensor b = a.copy();
  b.arrange(); // another order, other signs, other scales
  const Score s = score(a, b, true);
  EXPECT_NEAR(s.value, 1, 1e-14);
  for (i64 r = 0; r < 4; ++r) {
    const i64 partner = s.match[static_cast<std::size_t>(r)];
    const auto x = column(a, 1, r), y = column(b, 1, partner);
    EXPECT_NEAR(std::abs(x[2] / length(x)), std::abs(y[2]), 1e-15);
  }
}

TEST(KtensorScore, PenaltyForWeightsByHand) {
  const Ktensor a = make_ktensor({2, 2}, {4}, {{1, 0}, {1, 0}});
  const Ktensor b = make_ktensor({2, 2}, {1}, {{1, 0}, {3, 4}});
  // cosines 1 and 3/5; weights 4 and 5, so 1 - 1/5.
  EXPECT_NEAR(score(a, b, false).value, 0.6, 1e-15);
  EXPECT_NEAR(score(a, b, true).value, 0.48, 1e-15);
}

TEST(KtensorScore, UnequalRanksMatchTheSmaller) {
  const Ktensor a = make_ktensor({2, 2}, {1, 1}, {{1, 0, 0, 1}, {1, 0, 0, 1}});
  const Ktensor b = make_ktensor({2, 2}, {1}, {{0, 1}, {0, 1}});
  const Score ab = score(a, b, true);
  EXPECT_EQ(ab.value, 1);
  EXPECT_EQ(ab.match, (std::vector<i64>{-1, 0}));
  const Score ba = score(b, a, true);
  EXPECT_EQ(ba.value, 1);
  EXPECT_EQ(ba.match, (std::vector<i64>{1}));
  const Ktensor other = make_ktensor({2, 3}, {1}, {{0, 1}, {0, 1, 0}});
  EXPECT_THROW(score(a, other, true), Error);
}

} // namespace
