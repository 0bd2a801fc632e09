// Identities of MTTKRP that need no second implementation.
#include <cmath>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/oracle.hpp"

namespace {

using namespace tdtest;

class MttkrpIdentities : public OnPlace {
protected:
  std::vector<double> mttkrp_of(const Entries &x, const Factors &factors, int mode) {
    return mttkrp(context(), make_tensor(context(), format(), x), factors, mode, TD_F64);
  }
  /// Both sides of an identity err by at most the bound of their own sums; `scale` of them are compared at once.
  void expect_near(const std::vector<double> &a, const std::vector<double> &b, const Bounded &bound, double scale) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t e = 0; e < a.size(); ++e)
      ASSERT_NEAR(a[e], b[e], scale * gamma(bound.roundings[e] + 2, TD_F64) * static_cast<double>(bound.magnitude[e]))
          << "element " << e;
  }

  Random random_{31};
  Entries x_ = distinct_entries(random_, {11, 8, 6, 5}, 220, TD_F64);
  Factors u_ = random_factors(random_, x_.dims, 4, TD_F64);
};

TEST_P(MttkrpIdentities, LinearInEachFactor) {
  const double alpha = 0.75, beta = -1.25;
  for (int m = 0; m < 4; ++m)
    for (int mode = 0; mode < 4; ++mode) {
      if (m == mode)
        continue;
      Factors v = u_, sum = u_, magnitudes = u_;
      v.a[static_cast<std::size_t>(m)] = random_factors(random_, x_.dims, 4, TD_F64).a[static_cast<std::size_t>(m)];
      auto &mixed = sum.a[static_cast<std::size_t>(m)];
      for (std::size_t e = 0; e < mixed.size(); ++e) {
        const double a = alpha * u_.a[static_cast<std::size_t>(m)][e], b = beta * v.a[static_cast<std::size_t>(m)][e];
        mixed[e] = a + b;
        magnitudes.a[static_cast<std::size_t>(m)][e] = std::fabs(a) + std::fabs(b);
      }
      const auto of_u = mttkrp_of(x_, u_, mode), of_v = mttkrp_of(x_, v, mode);
      std::vector<double> combined;
      for (std::size_t e = 0; e < of_u.size(); ++e)
        combined.push_back(alpha * of_u[e] + beta * of_v[e]);
      expect_near(mttkrp_of(x_, sum, mode), combined, oracle_mttkrp(x_, magnitudes, mode), 3);
    }
}

TEST_P(MttkrpIdentities, LinearInTheTensor) {
  Entries x1(x_.dims), x2(x_.dims);
  for (int64_t k = 0; k < x_.nnz(); ++k)
    (k % 3 == 0 ? x1 : x2).add(x_.coordinate(k), x_.values[static_cast<std::size_t>(k)]);
  for (int mode = 0; mode < 4; ++mode) {
    const auto m1 = mttkrp_of(x1, u_, mode), m2 = mttkrp_of(x2, u_, mode);
    std::vector<double> sum;
    for (std::size_t e = 0; e < m1.size(); ++e)
      sum.push_back(m1[e] + m2[e]);
    expect_near(mttkrp_of(x_, u_, mode), sum, oracle_mttkrp(x_, u_, mode), 3);
  }
}

TEST_P(MttkrpIdentities, PermutingModesPermutesTheResult) {
  for (const auto &modes : std::vector<std::vector<int>>{{3, 2, 1, 0}, {1, 2, 3, 0}, {0, 3, 1, 2}}) {
    const Entries permuted = x_.with_modes(modes);
    Factors factors(permuted.dims, u_.rank);
    for (std::size_t m = 0; m < 4; ++m)
      factors.a[m] = u_.a[static_cast<std::size_t>(modes[m])];
    for (int m = 0; m < 4; ++m) {
      const int mode = modes[static_cast<std::size_t>(m)];
      expect_near(mttkrp_of(permuted, factors, m), mttkrp_of(x_, u_, mode), oracle_mttkrp(x_, u_, mode), 2);
    }
  }
}

// td stores entries in an order of its own, so the order they are given in leaves no trace where the sums themselves
// have a fixed order, and none beyond rounding elsewhere.
TEST_P(MttkrpIdentities, PermutingEntriesChangesNothing) {
  const Entries shuffled = x_.permuted(random_permutation(random_, x_.nnz()));
  for (int mode = 0; mode < 4; ++mode) {
    const auto a = mttkrp_of(x_, u_, mode), b = mttkrp_of(shuffled, u_, mode);
    if (GetParam().device == "reference" || format() == "dense") {
      EXPECT_EQ(a, b);
    }
    expect_near(a, b, oracle_mttkrp(x_, u_, mode), 2);
  }
}

// <MTTKRP(X, U, n), U_n> = <X, [[U]]> for every n.
TEST_P(MttkrpIdentities, InnerProductIsTheSameInEveryMode) {
  const Tensor x = make_tensor(context(), format(), x_);
  const Ktensor k = make_ktensor(context(), u_);
  double direct = 0;
  check(td_ktensor_dot_tensor(context(), k, x, &direct));
  for (int mode = 0; mode < 4; ++mode) {
    const Bounded bounded = oracle_mttkrp(x_, u_, mode);
    const auto m = mttkrp_of(x_, u_, mode);
    long double product = 0, magnitude = 0;
    for (std::size_t e = 0; e < m.size(); ++e) {
      product += static_cast<long double>(m[e]) * u_.a[static_cast<std::size_t>(mode)][e];
      magnitude += bounded.magnitude[e] * std::fabs(u_.a[static_cast<std::size_t>(mode)][e]);
    }
    // Each entry passes through at most nnz + 2 N roundings on either side.
    EXPECT_NEAR(static_cast<double>(product), direct,
                2 * gamma(x_.nnz() + 8 + static_cast<int64_t>(m.size()), TD_F64) * static_cast<double>(magnitude));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MttkrpIdentities,
                         testing::ValuesIn(places({"coo", "blco", "sorted", "sorted_drop", "dense"})), place_name);

} // namespace
