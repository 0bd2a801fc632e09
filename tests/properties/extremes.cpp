// The ends of the range: numbers near overflow and underflow, the smallest tensors, no entries at all.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/planted.hpp"
#include "support/temporary.hpp"

namespace {

using namespace tdtest;

class Extremes : public OnPlace {
protected:
  Tensor make(const Entries &e, td_type type = TD_F64) {
    return make_tensor(context(), format(), e, {type, TD_I64, 0});
  }
  Random random_{91};
};

void expect_finite(const Fitted &run) {
  for (const char *series : {"fit", "fit_change", "residual"})
    for (const double v : report_series(run.report, series))
      EXPECT_TRUE(std::isfinite(v)) << series << " " << v;
  for (const double w : weights_of(run.model))
    EXPECT_TRUE(std::isfinite(w)) << "weight " << w;
  for (const auto &a : factors_of(run.model).a)
    for (const double v : a)
      ASSERT_TRUE(std::isfinite(v));
}

// A power of two only moves exponents: the fits are those of the unscaled tensor, the weights scaled, up to a few
// roundings where td rescales on its way.
TEST_P(Extremes, ScaleDoesNotMatter) {
  const Planted p = planted(random_, {9, 8, 7}, 2, 0.3, 0.2);
  const Options options{{"tol", "0"}, {"max_iters", "10"}};
  for (const td_type type : {TD_F32, TD_F64}) {
    Entries e = p.entries;
    for (double &v : e.values)
      v = rounded(v, type);
    const Fitted plain = cpals(context(), make(e, type), 2, options);
    const auto fit = report_series(plain.report, "fit");
    const double tolerance = type == TD_F32 ? 1e-5 : 1e-10; // as in properties/cpals.cpp
    for (const int exponent : type == TD_F32 ? std::vector<int>{-100, 100} : std::vector<int>{-900, -400, 400, 1000}) {
      SCOPED_TRACE("times 2^" + std::to_string(exponent));
      Entries scaled = e;
      for (double &v : scaled.values)
        v = std::ldexp(v, exponent);
      const Tensor x = make(scaled, type);
      EXPECT_NEAR(std::ldexp(tensor_norm(x), -exponent), tensor_norm(make(e, type)),
                  1e-12 * tensor_norm(make(e, type)));
      const Fitted run = cpals(context(), x, 2, options);
      expect_finite(run);
      const auto came = report_series(run.report, "fit");
      ASSERT_EQ(came.size(), fit.size());
      for (std::size_t i = 0; i < fit.size(); ++i)
        EXPECT_NEAR(came[i], fit[i], tolerance) << "iteration " << i + 1;
      const auto w = weights_of(run.model), w_plain = weights_of(plain.model);
      for (std::size_t r = 0; r < w.size(); ++r)
        EXPECT_NEAR(std::ldexp(w[r], -exponent), w_plain[r], tolerance * 100 * w_plain[0]) << "component " << r;
    }
  }
}

TEST_P(Extremes, SmallestTensors) {
  for (const auto &dims : std::vector<std::vector<int64_t>>{{1, 1}, {1, 5}, {5, 1, 1}, {1, 1, 1, 1}}) {
    const Tensor x = make(random_cells(random_, dims, TD_F64));
    for (const int64_t rank : {1, 3}) {
      const Fitted run = cpals(context(), x, rank, nullptr);
      expect_finite(run);
      EXPECT_NEAR(report_f64(run.report, "fit"), 1, 1e-7); // a matrix with one row or column has rank 1
    }
  }
}

TEST_P(Extremes, NoEntries) {
  const Entries none({4, 3, 5});
  const Tensor x = make(none);
  EXPECT_EQ(tensor_norm(x), 0);
  for (const char *init : {"random", "nvecs"}) {
    const Fitted run = cpals(context(), x, 2, Options{{"init", init}});
    expect_finite(run);
    EXPECT_EQ(report_f64(run.report, "fit"), 1);
    EXPECT_EQ(report_f64(run.report, "relative"), 0);
    EXPECT_EQ(ktensor_norm(run.model), 0);
  }
}

// A partial product that modes of a tensor without entries share has no rows.
TEST_P(Extremes, NoEntriesInASharedGroup) {
  const std::vector<int64_t> dims{4, 6, 3};
  const Tensor x = make_sparse(context(), Entries(dims), {}, Options{{"groups", "0|1,2"}});
  const Fitted run = cpals(context(), x, 2, nullptr);
  expect_finite(run);
  EXPECT_EQ(report_f64(run.report, "fit"), 1);
  EXPECT_EQ(ktensor_norm(run.model), 0);
  for (int mode = 0; mode < 3; ++mode)
    for (const double v : mttkrp(context(), x, random_factors(random_, dims, 2, TD_F64), mode, TD_F64))
      EXPECT_EQ(v, 0);
}

// Columns that a start has only for their direction may be as long as they like: powers of two change no digit of a
// run. The first factor is computed before it is used.
TEST_P(Extremes, LengthsOfAStartDoNotMatter) {
  const std::vector<int64_t> dims{9, 8, 7};
  const Planted p = planted(random_, dims, 2, 0.3, 0.2);
  const Options options{{"tol", "0"}, {"max_iters", "10"}};
  for (const td_type type : {TD_F32, TD_F64}) {
    const Tensor x = make(p.entries, type);
    const Factors start = random_factors(random_, dims, 2, type);
    const auto fits = [&](int exponent) {
      Factors scaled = start;
      for (int m = 0; m < 3; ++m)
        for (int64_t i = 0; i < dims[static_cast<std::size_t>(m)]; ++i)
          for (int64_t r = 0; r < 2; ++r)
            scaled.at(m, i, r) = std::ldexp(scaled.at(m, i, r), r == 0 ? exponent : exponent / 2);
      const Fitted run = cpals(context(), x, 2, options, make_ktensor(context(), scaled, type));
      expect_finite(run);
      return report_series(run.report, "fit");
    };
    const std::vector<double> expected = fits(0);
    for (const int exponent : type == TD_F32 ? std::vector<int>{-90, 90} : std::vector<int>{-1000, -300, 300, 900}) {
      SCOPED_TRACE("times 2^" + std::to_string(exponent));
      const std::vector<double> came = fits(exponent);
      ASSERT_EQ(came.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) // as in properties/cpals.cpp
        EXPECT_NEAR(came[i], expected[i], type == TD_F32 ? 1e-5 : 1e-10) << "iteration " << i + 1;
    }
  }
}

// The Gram matrices of 19 columns of 3000 elements in [0, 1) have a product of 1e57 about, by which updates are
// divided. One entry is 1e8, and in a product of 19 such elements none makes up for that.
TEST_P(Extremes, ManyLongModes) {
  constexpr int order = 20;
  constexpr int64_t length = 3000;
  Entries e(std::vector<int64_t>(order, length));
  std::vector<std::vector<int64_t>> places;
  for (int m = 0; m < order; ++m)
    places.push_back(random_permutation(random_, length));
  for (int64_t k = 0; k < length; ++k) {
    std::vector<int64_t> coordinate;
    for (const auto &at : places)
      coordinate.push_back(at[static_cast<std::size_t>(k)]);
    e.add(coordinate, k == 0 ? 1e8 : random_.uniform());
  }
  for (const td_type type : {TD_F32, TD_F64}) {
    const Fitted run = cpals(context(), make_sparse(context(), e, {type, TD_I64, 0}), 1, Options{{"max_iters", "20"}});
    expect_finite(run);
    EXPECT_GT(report_f64(run.report, "fit"), 1 - 1e-5); // the others have a norm of sqrt(3000 / 3) about
  }
}

// The model is within f64 where the norm of the tensor and the residual are not: these are refused when they are asked
// for, and no checkpoint is left that could not be read. Eight of 512 elements have another sign than the rest, so that
// the residual is 2.4e308 sqrt(8) about.
TEST_P(Extremes, NormsBeyondTheLargestNumber) {
  Entries e({8, 8, 8});
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j)
      for (int64_t k = 0; k < 8; ++k)
        e.add({i, j, k}, i == j && j == k ? 1.2e308 : -1.2e308);
  const TemporaryFolder folder;
  const std::string file = folder.file("run.tdb");
  const Fitted run = cpals(
      context(), make(e), 1,
      Options{{"tol", "0"}, {"max_iters", "3"}, {"arrange", "0"}, {"fixsigns", "0"}, {"checkpoint", file.c_str()}});
  double number = 0;
  EXPECT_GT(report_f64(run.report, "fit"), 0.5);
  for (const char *key : {"norm", "residual"}) {
    EXPECT_EQ(td_report_get_f64(run.report, key, &number), TD_ERR_NUMERICAL);
    EXPECT_NE(last_error().find(key), std::string::npos) << last_error();
  }
  int64_t count = 0;
  EXPECT_EQ(td_report_get_series(run.report, "residual", nullptr, 0, &count), TD_ERR_NUMERICAL);
  EXPECT_NE(report_str(run.report, "checkpoint_error"), "");
  EXPECT_FALSE(std::filesystem::exists(file));
}

// One slice is empty: its row of the factor is 0 in every component.
TEST_P(Extremes, EmptySlicesGiveZeroRows) {
  Entries e({6, 5, 4});
  for (int k = 0; k < 60; ++k)
    e.add({k % 2 == 0 ? 0 : 5, random_.below(5), random_.below(4)}, random_.symmetric());
  const Fitted run = cpals(context(), make(e), 3, Options{{"max_iters", "5"}});
  expect_finite(run);
  const Factors f = factors_of(run.model);
  for (const int64_t row : {1, 2, 3, 4})
    for (int64_t r = 0; r < 3; ++r)
      EXPECT_EQ(f.at(0, row, r), 0);
}

// Columns of the start that are nearly parallel: the normal equations are singular to working precision.
TEST_P(Extremes, NearlyParallelStart) {
  const Planted p = planted(random_, {9, 8, 7}, 2, 0, 0.1);
  Factors start = random_factors(random_, {9, 8, 7}, 3, TD_F64);
  for (int m = 0; m < 3; ++m)
    for (int64_t i = 0; i < start.dims[static_cast<std::size_t>(m)]; ++i) {
      start.at(m, i, 1) = start.at(m, i, 0) * (1 + 1e-14);
      start.at(m, i, 2) = start.at(m, i, 0);
    }
  const Fitted run =
      cpals(context(), make(p.entries), 3, Options{{"max_iters", "10"}, {"tol", "0"}}, make_ktensor(context(), start));
  expect_finite(run);
  const auto fit = report_series(run.report, "fit");
  EXPECT_GE(fit.back(), 0);
  EXPECT_LE(fit.back(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, Extremes, testing::ValuesIn(places({"coo", "blco", "sorted", "sorted_drop", "dense"})),
                         place_name);

} // namespace
