// What operations on a model must keep, and what Tensor Toolbox's documentation shows of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/oracle.hpp"

namespace {

using namespace tdtest;

class Ktensors : public testing::TestWithParam<td_type> {
protected:
  td_type type_ = GetParam();
  double u_ = unit_roundoff(type_);
  Context context_ = make_context("cpu");
  Random random_{61};
  Factors factors_ = random_factors(random_, {6, 5, 7}, 4, type_);
  std::vector<double> weights_{1.5, -3, 0.25, 2};
  Ktensor k_ = make_ktensor(context_, factors_, type_, weights_);

  std::vector<double> full(const td_ktensor *k) {
    std::vector<double> v(6 * 5 * 7);
    check(td_ktensor_full(k, nullptr, TD_F64, v.data()));
    return v;
  }
  /// The same tensor after columns were rescaled: each of N factors and the weight are rounded once or twice.
  void expect_same_tensor(const td_ktensor *k) {
    EXPECT_TRUE(within_bound(full(k), oracle_full(factors_, weights_), type_, 4));
  }
};

TEST_P(Ktensors, NormalizeKeepsTheTensor) {
  const Ktensor k = copy(k_);
  check(td_ktensor_normalize(k));
  expect_same_tensor(k);
  const Factors f = factors_of(k);
  for (int m = 0; m < 3; ++m)
    for (int64_t r = 0; r < 4; ++r) {
      double squares = 0;
      for (int64_t i = 0; i < f.dims[static_cast<std::size_t>(m)]; ++i)
        squares += f.at(m, i, r) * f.at(m, i, r);
      EXPECT_NEAR(squares, 1, 16 * u_);
    }
}

TEST_P(Ktensors, ArrangeKeepsTheTensorAndOrdersWeights) {
  const Ktensor k = copy(k_);
  check(td_ktensor_arrange(k));
  expect_same_tensor(k);
  const auto w = weights_of(k);
  EXPECT_TRUE(std::is_sorted(w.rbegin(), w.rend()));
  EXPECT_GT(w.back(), 0);
}

TEST_P(Ktensors, FixsignsKeepsTheTensor) {
  const Ktensor k = copy(k_);
  check(td_ktensor_fixsigns(k));
  expect_same_tensor(k);
  const Factors f = factors_of(k);
  for (int64_t r = 0; r < 4; ++r) {
    int negative = 0;
    for (int m = 0; m < 3; ++m) {
      double largest = 0;
      for (int64_t i = 0; i < f.dims[static_cast<std::size_t>(m)]; ++i)
        if (std::fabs(f.at(m, i, r)) > std::fabs(largest))
          largest = f.at(m, i, r);
      negative += largest < 0 ? 1 : 0;
    }
    EXPECT_LE(negative, 1) << "component " << r;
  }
}

TEST_P(Ktensors, ZeroColumnStaysZeroAndLosesItsWeight) {
  Factors f = factors_;
  for (int64_t i = 0; i < 5; ++i)
    f.at(1, i, 2) = 0;
  const Ktensor k = make_ktensor(context_, f, type_, weights_);
  check(td_ktensor_normalize(k));
  EXPECT_EQ(weights_of(k)[2], 0);
  const Factors after = factors_of(k);
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(after.at(1, i, 2), 0);
}

TEST_P(Ktensors, NormAndDotAreThoseOfTheFullTensors) {
  const Factors g = random_factors(random_, {6, 5, 7}, 2, type_);
  const Ktensor b = make_ktensor(context_, g, type_, {1, 2});
  const Bounded fa = oracle_full(factors_, weights_), fb = oracle_full(g, {1, 2});
  long double aa = 0, ab = 0, aa_magnitude = 0, ab_magnitude = 0;
  for (std::size_t e = 0; e < fa.value.size(); ++e) {
    aa += fa.value[e] * fa.value[e];
    ab += fa.value[e] * fb.value[e];
    aa_magnitude += fa.magnitude[e] * fa.magnitude[e];
    ab_magnitude += fa.magnitude[e] * fb.magnitude[e];
  }
  // Gram matrices in f64: sums over rows, products over 3 modes, sums over 4 x 4 components.
  const double bound = gamma(6 + 5 + 7 + 16 + 8, TD_F64);
  double dot = 0;
  check(td_ktensor_dot(k_, b, &dot));
  EXPECT_NEAR(dot, static_cast<double>(ab), bound * static_cast<double>(ab_magnitude));
  const double norm = ktensor_norm(k_);
  EXPECT_NEAR(norm * norm, static_cast<double>(aa), 2 * bound * static_cast<double>(aa_magnitude));
}

TEST_P(Ktensors, ScoreSeesThroughOrderScaleAndSign) {
  Factors g({6, 5, 7}, 4);
  std::vector<double> w(4);
  const std::vector<int64_t> order{2, 0, 3, 1};
  for (int64_t r = 0; r < 4; ++r) {
    const auto from = order[static_cast<std::size_t>(r)];
    w[static_cast<std::size_t>(r)] = weights_[static_cast<std::size_t>(from)];
    const double scale[] = {2, -0.5, -1}; // powers of two: exact, and the product is 1
    for (int m = 0; m < 3; ++m)
      for (int64_t i = 0; i < g.dims[static_cast<std::size_t>(m)]; ++i)
        g.at(m, i, r) = factors_.at(m, i, from) * scale[m];
  }
  const Ktensor b = make_ktensor(context_, g, type_, w);
  double s = 0;
  std::vector<int64_t> match(4, -2);
  check(td_ktensor_score(k_, b, 1, &s, match.data()));
  EXPECT_NEAR(s, 1, 64 * u_);
  EXPECT_EQ(match, (std::vector<int64_t>{1, 3, 0, 2}));
}

TEST_P(Ktensors, ScoreOfDifferentRanks) {
  Factors two({6, 5, 7}, 2); // components 3 and 1
  for (int m = 0; m < 3; ++m)
    for (int64_t i = 0; i < two.dims[static_cast<std::size_t>(m)]; ++i) {
      two.at(m, i, 0) = factors_.at(m, i, 3);
      two.at(m, i, 1) = factors_.at(m, i, 1);
    }
  const Ktensor b = make_ktensor(context_, two, type_, {weights_[3], weights_[1]});
  double s = 0;
  std::vector<int64_t> match(4, -2), back(2, -2);
  check(td_ktensor_score(k_, b, 1, &s, match.data()));
  EXPECT_NEAR(s, 1, 64 * u_);
  EXPECT_EQ(match, (std::vector<int64_t>{-1, 1, -1, 0}));
  check(td_ktensor_score(b, k_, 1, &s, back.data()));
  EXPECT_NEAR(s, 1, 64 * u_);
  EXPECT_EQ(back, (std::vector<int64_t>{3, 1}));
}

// Exactly 1, not nearly: cosines of a column with itself, weights, and the mean. A component of zeros is its own match.
TEST_P(Ktensors, ScoreOfAModelWithItselfIsOne) {
  for (const int64_t rank : {1, 7, 10, 49}) {
    Factors f = random_factors(random_, {6, 5, 7}, rank, type_);
    std::vector<double> w;
    for (int64_t r = 0; r < rank; ++r)
      w.push_back(std::ldexp(random_.symmetric(), static_cast<int>(random_.below(40))));
    for (int64_t i = 0; i < 5; ++i)
      f.at(1, i, rank / 2) = rank == 10 ? 0 : f.at(1, i, rank / 2);
    const Ktensor k = make_ktensor(context_, f, type_, w);
    for (int form = 0; form < 3; ++form) {
      check(form == 0 ? TD_OK : form == 1 ? td_ktensor_normalize(k) : td_ktensor_arrange(k));
      const Ktensor same = copy(k);
      EXPECT_EQ(score(k, same), 1) << "rank " << rank << ", form " << form;
      EXPECT_EQ(score(k, same, false), 1) << "rank " << rank << ", form " << form;
    }
  }
}

// More pairs of components than are there at a time.
TEST_P(Ktensors, ManyComponents) {
  const int64_t rank = 700;
  const Factors f = random_factors(random_, {2, 1, 3}, rank, type_), g = random_factors(random_, {2, 1, 3}, 600, type_);
  const std::vector<double> ones(700, 1), fewer(600, 1);
  const Ktensor a = make_ktensor(context_, f, type_, ones), b = make_ktensor(context_, g, type_, fewer);
  const Bounded fa = oracle_full(f, ones), fb = oracle_full(g, fewer);
  long double inner = 0, magnitude = 0;
  for (std::size_t e = 0; e < fa.value.size(); ++e) {
    inner += fa.value[e] * fb.value[e];
    magnitude += fa.magnitude[e] * fb.magnitude[e];
  }
  double dot = 0;
  check(td_ktensor_dot(a, b, &dot));
  EXPECT_NEAR(dot, static_cast<double>(inner), gamma(700 * 600, TD_F64) * static_cast<double>(magnitude));
  EXPECT_EQ(score(a, a), 1);
}

// Greedy matching takes the best pair first and is left with the worst. Columns in the plane at angles of 0 and 40
// degrees in a, 30 and 75 in b, equal in the other mode: greedy takes (40, 30), cos 10 = 0.985, and is left with
// (0, 75), cos 75 = 0.259, sum 1.244; optimal are (0, 30) and (40, 75), cos 30 + cos 35 = 0.866 + 0.819 = 1.685.
TEST_P(Ktensors, ScoreIsTheBestAssignment) {
  const auto at_angles = [&](double first, double second) {
    const double radian = std::acos(-1.0) / 180;
    Factors f({2, 1}, 2);
    f.a = {{std::cos(first * radian), std::sin(first * radian), std::cos(second * radian), std::sin(second * radian)},
           {1, 1}};
    return make_ktensor(context_, f, type_);
  };
  const double expected = (std::cos(30 * std::acos(-1.0) / 180) + std::cos(35 * std::acos(-1.0) / 180)) / 2;
  EXPECT_NEAR(score(at_angles(0, 40), at_angles(30, 75)), expected, 64 * u_);
}

/// A model whose norm is `size` times that of one with entries around 1, out of factors and weights in f64's range.
class Far : public testing::TestWithParam<td_type> {
protected:
  td_type type_ = GetParam();
  Context context_ = make_context("cpu");
  Random random_{67};
  Factors factors_ = random_factors(random_, {6, 5, 7}, 3, type_);
  Entries x_ = random_cells(random_, {6, 5, 7}, type_);

  Ktensor model(int exponent) { return make_ktensor(context_, scaled(exponent), type_, weights(exponent)); }
  /// What the weights do not take of exponents beyond 1000 goes into two factors, of f32 up to 2^100 each.
  static std::vector<double> weights(int exponent) {
    const double w = std::ldexp(1.0, std::min(exponent, 1000));
    return {w, -2 * w, w / 2};
  }
  Factors scaled(int exponent) const {
    Factors f = factors_;
    const int rest = std::max(exponent - 1000, 0);
    for (double &v : f.a[0])
      v = std::ldexp(v, rest / 2);
    for (double &v : f.a[2])
      v = std::ldexp(v, rest - rest / 2);
    return f;
  }
  Tensor tensor(const char *format, int exponent) {
    Entries e = x_;
    for (double &v : e.values)
      v = std::ldexp(v, exponent);
    return make_tensor(context_, format, e, {type_, TD_I64, 0});
  }
};

/// The number where it is in f64's range, else TD_ERR_NUMERICAL with a sentence. `least` is the smallest of the numbers
/// that it is a difference of.
void expect_or_refuse(td_status status, double came, long double expected, long double tolerance, const char *name,
                      long double least = 0) {
  if (std::abs(expected) > std::numeric_limits<double>::max()) {
    EXPECT_EQ(status, TD_ERR_NUMERICAL) << name << " is " << expected << ", came " << came;
    EXPECT_NE(last_error().find(name), std::string::npos) << last_error();
  } else {
    ASSERT_EQ(status, TD_OK) << name << " is " << expected << ": " << last_error();
    EXPECT_LE(std::abs(came - expected), tolerance * std::max(std::abs(expected), least))
        << name << " is " << expected << ", came " << came;
  }
}

TEST_P(Far, NormsProductsAndFitsAreRightOrRefused) {
  // Numbers in extended precision, whose range is that of 2^16384; roundings of MTTKRP-like sums in the tensor's type.
  const double tolerance = 4096 * unit_roundoff(type_);
  for (const int e : {0, 200, 900, 1023, 1030, 1060, 1130, 1200})
    for (const int x_exponent : {-100, 0, 100}) {
      SCOPED_TRACE("model 2^" + std::to_string(e) + ", tensor 2^" + std::to_string(x_exponent));
      const Bounded m = oracle_full(scaled(e), weights(e));
      long double mm = 0, mx = 0, mx_magnitude = 0, xx = 0, rest = 0;
      for (std::size_t k = 0; k < m.value.size(); ++k) {
        const long double v = std::ldexp(static_cast<long double>(x_.values[k]), x_exponent);
        mm += m.value[k] * m.value[k];
        mx += m.value[k] * v;
        mx_magnitude += m.magnitude[k] * std::abs(v);
        xx += v * v;
        rest += (v - m.value[k]) * (v - m.value[k]);
      }
      const Ktensor k = model(e);
      double came = 0;
      td_status status = td_ktensor_norm(k, &came);
      expect_or_refuse(status, came, std::sqrt(mm), tolerance, "norm");
      status = td_ktensor_dot(k, k, &came);
      expect_or_refuse(status, came, mm, tolerance, "inner product");
      for (const char *format : {"sorted", "dense"}) {
        const Tensor x = tensor(format, x_exponent);
        status = td_ktensor_dot_tensor(context_, k, x, &came);
        expect_or_refuse(status, came, mx, tolerance * mx_magnitude / std::abs(mx), "inner product");
        status = td_ktensor_fit(context_, k, x, nullptr, nullptr, nullptr, &came);
        expect_or_refuse(status, came, std::sqrt(rest), tolerance, "residual");
        const long double relative = std::sqrt(rest / xx);
        status = td_ktensor_fit(context_, k, x, nullptr, nullptr, &came, nullptr);
        expect_or_refuse(status, came, relative, tolerance, "relative residual");
        status = td_ktensor_fit(context_, k, x, &came, nullptr, nullptr, nullptr);
        expect_or_refuse(status, came, 1 - relative, tolerance, "fit", 1);
        status = td_ktensor_fit(context_, k, x, nullptr, &came, nullptr, nullptr);
        expect_or_refuse(status, came, 1 - relative * relative, tolerance, "explained", 1);
      }
      std::vector<double> full(m.value.size());
      const bool inside = std::all_of(m.value.begin(), m.value.end(),
                                      [](long double v) { return std::abs(v) <= std::numeric_limits<double>::max(); });
      EXPECT_EQ(td_ktensor_full(k, nullptr, TD_F64, full.data()), inside ? TD_OK : TD_ERR_NUMERICAL);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Far, testing::Values(TD_F32, TD_F64),
                         [](const auto &info) { return info.param == TD_F32 ? "f32" : "f64"; });

INSTANTIATE_TEST_SUITE_P(All, Ktensors, testing::Values(TD_F32, TD_F64),
                         [](const auto &info) { return info.param == TD_F32 ? "f32" : "f64"; });

// Tensor Toolbox, documentation of fixsigns: ktensor([1;1], {[1 1;1 -10], [1 1;1 -10]}).
TEST(ToolboxFixsigns, O9) {
  const Context context = make_context("reference");
  Factors f({2, 2}, 2);
  f.a = {{1, 1, 1, -10}, {1, 1, 1, -10}};
  const Ktensor k = make_ktensor(context, f);
  check(td_ktensor_arrange(k));
  const auto w = weights_of(k);
  EXPECT_NEAR(w[0], 101, 101 * 8 * 0x1p-53); // (1, -10) has length sqrt(101) in both modes
  EXPECT_NEAR(w[1], 2, 2 * 8 * 0x1p-53);
  EXPECT_LT(factors_of(k).at(0, 1, 0), 0);
  check(td_ktensor_fixsigns(k));
  const Factors fixed = factors_of(k);
  for (int m = 0; m < 2; ++m) {
    EXPECT_NEAR(fixed.at(m, 0, 0), -1 / std::sqrt(101.0), 1e-15);
    EXPECT_NEAR(fixed.at(m, 1, 0), 10 / std::sqrt(101.0), 1e-15);
    EXPECT_NEAR(fixed.at(m, 0, 1), std::sqrt(0.5), 1e-15);
  }
  EXPECT_NEAR(weights_of(k)[0], 101, 101 * 8 * 0x1p-53);
}

} // namespace
