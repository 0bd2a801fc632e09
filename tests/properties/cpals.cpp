// What CP-ALS must do on any tensor: never worsen the fit, find what is there, and give the same run for any number of
// workers.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/planted.hpp"

namespace {

using namespace tdtest;

class Cpals : public OnPlace {
protected:
  Tensor make(const Entries &e, td_type type = TD_F64) {
    return make_tensor(context(), format(), e, {type, TD_I64, 0});
  }
  Random random_{41};
};

void expect_monotone(const std::vector<double> &fit, double rounding) {
  ASSERT_FALSE(fit.empty());
  for (std::size_t i = 0; i < fit.size(); ++i) {
    EXPECT_LE(fit[i], 1.0) << "iteration " << i + 1;
    EXPECT_TRUE(std::isfinite(fit[i])) << "iteration " << i + 1;
    if (i > 0) {
      EXPECT_GE(fit[i], fit[i - 1] - rounding) << "iteration " << i + 1;
    }
  }
}

// Each half-step minimizes the residual over one factor, so that the fit cannot fall but by rounding: the quick
// residual of a fit that is not near 1 has a relative error of a few hundred u, here 1e-12 at most.
TEST_P(Cpals, FitNeverFallsAndIsAtMostOne) {
  for (const double noise : {0.05, 0.5}) {
    const Planted p = planted(random_, {14, 11, 9}, 3, 0.3, noise);
    const Fitted run = cpals(context(), make(p.entries), 4, Options{{"tol", "0"}, {"max_iters", "40"}, {"seed", "5"}});
    const auto fit = report_series(run.report, "fit");
    ASSERT_EQ(fit.size(), 40u);
    expect_monotone(fit, 1e-12);
    EXPECT_EQ(report_f64(run.report, "fit"), fit.back());
    EXPECT_EQ(report_i64(run.report, "iterations"), 40);
    EXPECT_EQ(report_str(run.report, "stop_reason"), "max_iters");
  }
}

// f32 MTTKRP moves a step by some 1e-6 of |X|.
TEST_P(Cpals, FitNeverFallsInSinglePrecision) {
  const Planted p = planted(random_, {14, 11, 9}, 3, 0.3, 0.2);
  const Fitted run =
      cpals(context(), make(p.entries, TD_F32), 3, Options{{"tol", "0"}, {"max_iters", "30"}, {"seed", "5"}});
  expect_monotone(report_series(run.report, "fit"), 1e-5);
}

// Both have the same values, which f32 holds. Rows in f32 move an element of MTTKRP by 2 * 2^-24 of its terms'
// magnitudes, and f32 factors those of the model by 2^-24; a step of ALS on a tensor like this one does not magnify
// that by ten.
TEST_P(Cpals, MixedPrecisionFitsAsF64Does) {
  Planted p = planted(random_, {34, 31, 29}, 3, 0.3, 0.2);
  for (double &v : p.entries.values)
    v = rounded(v, TD_F32);
  const auto fits = [&](td_type type, std::initializer_list<std::pair<const char *, std::string>> precision) {
    Options options(precision);
    if (format() != "dense")
      options.set("format", format().substr(0, format().find('_')));
    if (format() == "sorted_drop")
      options.set("empty_rows", "drop");
    const Tensor x = format() == "dense" ? make_dense(context(), p.entries, type, options)
                                         : make_sparse(context(), p.entries, {type, TD_I64, 0}, options);
    const Fitted run = cpals(context(), x, 3, Options{{"tol", "0"}, {"max_iters", "10"}, {"seed", "5"}});
    return report_series(run.report, "fit");
  };
  const auto f64 = fits(TD_F64, {});
  const auto gathered = fits(TD_F64, {{"gather", "f32"}});
  const auto accumulated = fits(TD_F32, {{"accumulate", "f64"}});
  ASSERT_EQ(gathered.size(), f64.size());
  ASSERT_EQ(accumulated.size(), f64.size());
  for (std::size_t i = 0; i < f64.size(); ++i) {
    EXPECT_NEAR(gathered[i], f64[i], 1e-6) << "iteration " << i + 1;
    EXPECT_NEAR(accumulated[i], f64[i], 1e-5) << "iteration " << i + 1;
  }
}

// Positive random factors of rank 3 in dims above it: the decomposition is unique (Kruskal), and ALS finds it from one
// of a few starts.
TEST_P(Cpals, FindsAnExactDecomposition) {
  const Planted p = planted(random_, {15, 12, 10}, 3, 0.4, 0);
  const Tensor x = make(p.entries);
  const Ktensor truth = make_ktensor(context(), p.factors);
  double best = 0;
  for (int seed = 0; seed < 5 && best <= 0.99; ++seed) {
    const Fitted run =
        cpals(context(), x, 3, Options{{"tol", "1e-10"}, {"max_iters", "500"}, {"seed", std::to_string(seed)}});
    expect_monotone(report_series(run.report, "fit"), 1e-7); // near fit 1 the residual is a difference: sqrt(u)
    best = std::max(best, score(run.model, truth));
  }
  EXPECT_GT(best, 0.99);
}

// Eigenvectors of different eigenvalues, up to the order of sums.
TEST_P(Cpals, NvecsStartIsTheSameEverywhere) {
  const Planted p = planted(random_, {14, 11, 9}, 3, 0.3, 0.2);
  const Options options{{"init", "nvecs"}, {"max_iters", "1"}};
  const Fitted run = cpals(context(), make(p.entries), 2, options);
  const Context reference = make_context("reference");
  const Fitted expected = cpals(reference, make_tensor(reference, "coo", p.entries), 2, options);
  EXPECT_NEAR(report_f64(run.report, "fit"), report_f64(expected.report, "fit"), 1e-10);
  EXPECT_GT(score(run.model, expected.model), 1 - 1e-8);
}

TEST_P(Cpals, ReportAgreesWithTheModel) {
  const Planted p = planted(random_, {14, 11, 9}, 3, 0.3, 0.2);
  const Tensor x = make(p.entries);
  const Fitted run = cpals(context(), x, 3, Options{{"max_iters", "10"}});
  const Fit f = fit_of(context(), run.model, x);
  EXPECT_NEAR(f.fit, report_f64(run.report, "fit"), 1e-12);
  EXPECT_NEAR(f.explained, report_f64(run.report, "explained"), 1e-12);
  EXPECT_NEAR(f.relative, report_f64(run.report, "relative"), 1e-12);
  EXPECT_NEAR(f.residual, report_f64(run.report, "residual"), 1e-11 * tensor_norm(x));
  EXPECT_NEAR(f.explained, 1 - f.relative * f.relative, 1e-14);
  EXPECT_NEAR(f.fit, 1 - f.relative, 1e-14);
  const auto w = weights_of(run.model);
  EXPECT_TRUE(std::is_sorted(w.rbegin(), w.rend()));
  EXPECT_GT(w.back(), 0);
}

TEST_P(Cpals, RankAboveEveryDimension) {
  const Planted p = planted(random_, {4, 3, 2}, 2, 0, 0.3);
  const Fitted run = cpals(context(), make(p.entries), 9, Options{{"tol", "0"}, {"max_iters", "30"}});
  const auto fit = report_series(run.report, "fit");
  expect_monotone(fit, 1e-7);
  EXPECT_GT(fit.back(), 0.999); // 9 components hold every 4 x 3 x 2 tensor, whose rank is at most 6
  const Factors factors = factors_of(run.model);
  for (const auto &a : factors.a)
    for (const double v : a)
      ASSERT_TRUE(std::isfinite(v));
}

TEST_P(Cpals, ZeroTensor) {
  Entries zero({4, 3, 2});
  zero.add({1, 1, 1}, 0.0);
  const Fitted run = cpals(context(), make(zero), 2, nullptr);
  EXPECT_EQ(report_f64(run.report, "fit"), 1);
  EXPECT_EQ(ktensor_norm(run.model), 0);
}

// The same numbers come out in another order of sums. ALS contracts near a minimum, so rounding does not build up;
// 1e-10 leaves room for the condition of the solves, some 1e3, times iterations.
TEST_P(Cpals, SameRunAsReference) {
  const Planted p = planted(random_, {14, 11, 9}, 3, 0.3, 0.2);
  const Options options{{"tol", "0"}, {"max_iters", "25"}, {"seed", "3"}};
  const Fitted here = cpals(context(), make(p.entries), 3, options);
  const Context reference = make_context("reference");
  const Fitted there = cpals(reference, make_sparse(reference, p.entries), 3, options);
  const auto a = report_series(here.report, "fit"), b = report_series(there.report, "fit");
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-10) << "iteration " << i + 1;
  EXPECT_GT(score(here.model, there.model), 1 - 1e-7);
}

TEST_P(Cpals, SameStartGivesTheSameBitsTwice) {
  const Planted p = planted(random_, {14, 11, 9}, 3, 0.3, 0.2);
  const Options options{{"deterministic", "1"}, {"tol", "0"}, {"max_iters", "15"}};
  const Tensor x = make(p.entries);
  const Fitted first = cpals(context(), x, 3, options), second = cpals(context(), x, 3, options);
  EXPECT_EQ(report_series(first.report, "fit"), report_series(second.report, "fit"));
  EXPECT_EQ(weights_of(first.model), weights_of(second.model));
  EXPECT_EQ(factors_of(first.model).a, factors_of(second.model).a);
}

INSTANTIATE_TEST_SUITE_P(All, Cpals, testing::ValuesIn(places({"coo", "blco", "sorted", "sorted_drop", "dense"})),
                         place_name);

class CpalsWorkers : public testing::TestWithParam<std::string> {
protected:
  Random random_{43};
  Planted p_ = planted(random_, {30, 17, 9, 5}, 4, 0.5, 0.2);
  Fitted run(int workers, const Options &options, td_type type = TD_F64) {
    const Context c = make_context("cpu:" + std::to_string(workers));
    const Tensor x = make_tensor(c, GetParam(), p_.entries, {type, TD_I64, 0});
    Fitted r = cpals(c, x, 4, options);
    EXPECT_EQ(report_i64(r.report, "workers"), workers);
    return r;
  }
};

TEST_P(CpalsWorkers, SameHistoryWithinRounding) {
  const Options options{{"tol", "0"}, {"max_iters", "20"}};
  const Fitted one = run(1, options);
  const auto expected = report_series(one.report, "fit");
  for (const int workers : {2, 3, 4, 7}) {
    const Fitted many = run(workers, options);
    const auto came = report_series(many.report, "fit");
    ASSERT_EQ(came.size(), expected.size());
    for (std::size_t i = 0; i < came.size(); ++i)
      ASSERT_NEAR(came[i], expected[i], 1e-10) << workers << " workers, iteration " << i + 1; // as SameRunAsReference
    EXPECT_GT(score(many.model, one.model), 1 - 1e-7) << workers << " workers";
  }
}

TEST_P(CpalsWorkers, SameBitsWithDeterministic) {
  for (const td_type type : {TD_F32, TD_F64}) {
    const Options options{{"tol", "0"}, {"max_iters", "12"}, {"deterministic", "1"}};
    const Fitted one = run(1, options, type);
    for (const int workers : {2, 3, 4, 7}) {
      const Fitted many = run(workers, options, type);
      EXPECT_EQ(report_series(many.report, "fit"), report_series(one.report, "fit")) << workers << " workers";
      EXPECT_EQ(weights_of(many.model), weights_of(one.model)) << workers << " workers";
      EXPECT_EQ(factors_of(many.model).a, factors_of(one.model).a) << workers << " workers";
    }
  }
}

// More workers than rows in any mode: some own nothing.
TEST_P(CpalsWorkers, MoreWorkersThanRows) {
  const Planted small = planted(random_, {3, 2, 4}, 2, 0, 0.1);
  const Context c = make_context("cpu:7"), one = make_context("cpu");
  const Options options{{"tol", "0"}, {"max_iters", "5"}};
  const Fitted a = cpals(c, make_tensor(c, GetParam(), small.entries), 2, options);
  const Fitted b = cpals(one, make_tensor(one, GetParam(), small.entries), 2, options);
  EXPECT_NEAR(report_f64(a.report, "fit"), report_f64(b.report, "fit"), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(All, CpalsWorkers, testing::Values("coo", "blco", "sorted", "dense"),
                         [](const auto &info) { return info.param; });

} // namespace
