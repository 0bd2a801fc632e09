// Making ktensors and bringing them into standard form.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/columns.hpp"
#include "core/error.hpp"
#include "unit/ktensor_make.hpp"

namespace {

using namespace td;
using namespace td::test;

template <class F> std::string refusal(Status expected, F &&f) {
  try {
    f();
  } catch (const Error &e) {
    EXPECT_EQ(e.status(), expected) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Ktensor, ShapeIsChecked) {
  const std::vector<i64> one{3}, negative{3, -1}, good{2, 3};
  EXPECT_EQ(refusal(Status::shape, [&] { Ktensor(one, 1, ValueType::f64); }), "order = 1: expected 2 .. 64");
  EXPECT_EQ(refusal(Status::shape, [&] { Ktensor(negative, 1, ValueType::f64); }), "dims[1] = -1: expected at least 1");
  EXPECT_EQ(refusal(Status::shape, [&] { Ktensor(good, 0, ValueType::f64); }), "rank = 0: expected at least 1");
  const std::vector<i64> vast{i64{1} << 62, 2};
  refusal(Status::host_memory, [&] { Ktensor(vast, 4, ValueType::f32); });
}

TEST(Ktensor, FactorsGoInAndOutWithPadding) {
  const std::vector<i64> dims{2, 3};
  Ktensor k(dims, 2, ValueType::f32);
  constexpr float pad = std::numeric_limits<float>::quiet_NaN(); // would be refused if it were read
  const float in[] = {1, 2, 3, pad, 4, 5, 6, pad};
  k.set_factor(1, in, 4);
  EXPECT_EQ(k.factor(1).row<float>(0)[1], 4.0F);
  EXPECT_EQ(k.factor(1).row<float>(2)[0], 3.0F);
  float out[] = {0, 0, 0, -7, 0, 0, 0, -7, 0, -7};
  k.get_factor(1, out, 5);
  const float expected[] = {1, 2, 3, -7, 0, 4, 5, 6, 0, -7};
  EXPECT_TRUE(std::equal(std::begin(out), std::end(out), std::begin(expected)));
}

TEST(Ktensor, BadFactorsAreRefusedAndNothingChanges) {
  const std::vector<i64> dims{2, 3};
  Ktensor k(dims, 2, ValueType::f64);
  double a[] = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(refusal(Status::shape, [&] { k.set_factor(1, a, 2); }), "factor 1: ld = 2 < rows = 3");
  EXPECT_EQ(refusal(Status::shape, [&] { k.get_factor(1, a, 2); }), "factor 1: ld = 2 < rows = 3");
  EXPECT_EQ(refusal(Status::shape, [&] { k.set_factor(2, a, 3); }), "mode = 2: expected 0 .. 1");
  a[4] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal(Status::argument, [&] { k.set_factor(1, a, 3); }),
            "factor 1: entry at row 1, column 1 is not finite");
  EXPECT_EQ(column(k, 1, 0), (std::vector<double>{0, 0, 0}));
}

TEST(Ktensor, ToolboxExampleOfFixsigns) { // oracle O9
  Ktensor k = make_ktensor({2, 2}, {1, 1}, {{1, 1, 1, -10}, {1, 1, 1, -10}});
  const auto before = full_array(k);
  k.arrange();
  // |(1, -10)|^2 = 101 and |(1, 1)|^2 = 2.
  EXPECT_NEAR(k.weights()[0], 101, 1e-13);
  EXPECT_NEAR(k.weights()[1], 2, 1e-15);
  EXPECT_LT(column(k, 0, 0)[1], 0);
  k.fixsigns();
  for (int m = 0; m < 2; ++m) {
    EXPECT_NEAR(column(k, m, 0)[0], -1 / std::sqrt(101), 1e-15);
    EXPECT_NEAR(column(k, m, 0)[1], 10 / std::sqrt(101), 1e-15);
  }
  const auto after = full_array(k);
  for (std::size_t e = 0; e < after.size(); ++e)
    EXPECT_NEAR(after[e], before[e], 1e-13); // entries up to 101, a few roundings
}

TEST(Ktensor, FixsignsTurnsPairsOnly) {
  // All three columns point down: the first two turn, the third stays.
  Ktensor k = make_ktensor({2, 2, 2}, {1}, {{1, -2}, {-3, 1}, {0, -1}});
  k.fixsigns();
  EXPECT_EQ(column(k, 0, 0), (std::vector<double>{-1, 2}));
  EXPECT_EQ(column(k, 1, 0), (std::vector<double>{3, -1}));
  EXPECT_EQ(column(k, 2, 0), (std::vector<double>{0, -1}));
}

TEST(Ktensor, NormalizeKeepsZeroColumnsAndNegativeWeights) {
  Ktensor k = make_ktensor({2, 2}, {-2, 5}, {{3, 4, 0, 0}, {1, 0, 1, 1}});
  k.normalize();
  EXPECT_DOUBLE_EQ(k.weights()[0], -10);
  EXPECT_EQ(k.weights()[1], 0);
  EXPECT_DOUBLE_EQ(column(k, 0, 0)[1], 0.8);
  EXPECT_EQ(column(k, 0, 1), (std::vector<double>{0, 0}));
  k.arrange();
  EXPECT_DOUBLE_EQ(k.weights()[0], 10);
  EXPECT_DOUBLE_EQ(column(k, 0, 0)[1], -0.8);
  EXPECT_EQ(k.weights()[1], 0);
}

TEST(Ktensor, ArrangeKeepsTheOrderOfEqualWeights) {
  Ktensor k = make_ktensor({2, 2}, {1, 3, 1}, {{1, 0, 1, 0, 0, 1}, {1, 0, 1, 0, 1, 0}});
  k.arrange();
  EXPECT_EQ(std::vector<double>(k.weights().begin(), k.weights().end()), (std::vector<double>{3, 1, 1}));
  EXPECT_EQ(column(k, 0, 1), (std::vector<double>{1, 0}));
  EXPECT_EQ(column(k, 0, 2), (std::vector<double>{0, 1}));
}

// Rows of several blocks of sums. A column's largest magnitude is there in many rows, of which the first is negative.
TEST(Ktensor, FormsAreTheSameBitsWithAnyNumberOfThreads) {
  constexpr i64 rows = 150001, rank = 3;
  Ktensor k = random_ktensor({rows, 5}, rank, 7);
  for (const i64 i : {i64{17}, i64{70000}, i64{149999}, rows - 1})
    k.factor(0).row<double>(i)[1] = i == 17 ? -2 : 2;
  k.factor(1).row<double>(2)[1] = -3;
  k.weights()[0] = -3;
  for (const ValueType type : {ValueType::f64, ValueType::f32}) {
    const Ktensor given = k.convert(type);
    const auto formed = [&](int threads) {
      Ktensor form = given.copy();
      Meeting alone;
      alone.threads = threads;
      form.arrange(alone);
      form.fixsigns(alone);
      return form;
    };
    const Ktensor one = formed(1);
    EXPECT_TRUE(std::is_sorted(one.weights().begin(), one.weights().end(), std::greater<>()));
    double sum = 0; // of squares, in another order and precision
    for (const double x : column(one, 0, 0))
      sum += static_cast<double>(static_cast<long double>(x) * x);
    EXPECT_NEAR(sum, 1, 1e-4 * (type == ValueType::f32 ? 1 : 1e-6));
    for (const int threads : {2, 5}) {
      const Ktensor several = formed(threads);
      EXPECT_TRUE(std::equal(one.weights().begin(), one.weights().end(), several.weights().begin()));
      for (int m = 0; m < 2; ++m)
        for (i64 r = 0; r < rank; ++r)
          EXPECT_EQ(column(one, m, r), column(several, m, r)) << threads << " threads, mode " << m;
    }
    int found = 0; // the column whose largest magnitude is in several rows has turned, with its partner
    for (i64 r = 0; r < rank; ++r)
      if (const std::vector<double> a = column(one, 0, r); a[17] == -a[70000] && a[17] == -a[149999]) {
        ++found;
        EXPECT_GT(a[17], 0);
        EXPECT_GT(column(one, 1, r)[2], 0);
      }
    EXPECT_EQ(found, 1);
  }
}

// The squares of a matrix are the diagonal of its Gram matrix, also over several blocks.
TEST(Columns, SquaresAreTheDiagonalOfTheGramMatrix) {
  for (const i64 rows : {100, 65536, 65537, 200000}) {
    const Ktensor k = random_ktensor({rows, 2}, 3, 11);
    const ColumnScales scales = column_scales(k.factor(0));
    const std::vector<double> gram = scaled_gram(k.factor(0), scales, k.factor(0), scales);
    Meeting alone;
    for (alone.threads = 1; alone.threads < 5; ++alone.threads) {
      const std::vector<double> squares = scaled_squares(k.factor(0), scales, alone);
      for (std::size_t r = 0; r < 3; ++r)
        EXPECT_EQ(squares[r], gram[4 * r]) << rows << " rows, " << alone.threads << " threads";
    }
  }
}

TEST(Ktensor, NormalizeSurvivesTheEndsOfTheRange) {
  constexpr double big = std::numeric_limits<double>::max();
  constexpr double tiny = std::numeric_limits<double>::denorm_min();
  // The column's length is above the largest number; with a tiny partner the weight is in range again.
  Ktensor k = make_ktensor({2, 2}, {1}, {{big, big}, {tiny, 0}});
  k.normalize();
  EXPECT_NEAR(column(k, 0, 0)[0], std::sqrt(0.5), 1e-15);
  EXPECT_EQ(column(k, 1, 0), (std::vector<double>{1, 0}));
  EXPECT_NEAR(k.weights()[0] / (std::sqrt(2.0) * (big * tiny)), 1, 1e-15);
  Ktensor over = make_ktensor({2, 2}, {1}, {{big, big}, {2, 0}});
  refusal(Status::numerical, [&] { over.normalize(); });
  EXPECT_EQ(column(over, 1, 0), (std::vector<double>{2, 0}));
}

TEST(Ktensor, ConvertRoundsOnce) {
  const Ktensor k = make_ktensor({2, 2}, {0.1}, {{0.1, 2}, {3, 4}});
  const Ktensor f = k.convert(ValueType::f32);
  EXPECT_EQ(f.type(), ValueType::f32);
  EXPECT_EQ(f.weights()[0], 0.1);
  EXPECT_EQ(f.factor(0).row<float>(0)[0], 0.1F);
  EXPECT_EQ(column(k.copy(), 0, 0), column(k, 0, 0));
  const Ktensor large = make_ktensor({2, 2}, {1}, {{1, 1e300}, {3, 4}});
  EXPECT_EQ(refusal(Status::argument, [&] { large.convert(ValueType::f32); }),
            "factor 0: entry at row 1, column 0 is 1e+300: too large for f32");
}

} // namespace
