// Numbers that others published, to the digits they printed, and small cases whose result is known exactly.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/oracle.hpp"

namespace {

using namespace tdtest;

std::string digits(const char *format, double v) {
  char text[64];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

// Amino-acid fluorescence data (R. Bro, "PARAFAC. Tutorial and applications", 1997): 5 x 201 x 61.
class AminoAcid : public OnPlace {
protected:
  void SetUp() override {
    OnPlace::SetUp();
    if (IsSkipped())
      return;
    const std::filesystem::path file = std::filesystem::path(TD_TEST_DATA) / "aminoacid_data.txt";
    if (!std::filesystem::exists(file))
      GTEST_SKIP() << file << " is not there (set TD_TEST_DATA)";
    const bool dense = format() == "dense";
    const Options as{{"format", dense ? "auto" : format()}};
    check(td_tensor_read(context(), file.c_str(), as, x_.out()));
    if (dense) {
      const std::vector<int64_t> dims{5, 201, 61};
      std::vector<double> values(5 * 201 * 61);
      check(td_tensor_get_dense(x_, nullptr, TD_F64, values.data()));
      x_ = make<Tensor>(td_tensor_create_dense, context(), 3, dims.data(), nullptr, TD_F64, values.data(), TD_HOST,
                        nullptr);
    }
  }

  void expect_trace(const char *tol, const std::map<int, const char *> &published) {
    const Fitted run = cpals(context(), x_, 3, Options{{"init", "nvecs"}, {"tol", tol}, {"max_iters", "200"}});
    const auto fit = report_series(run.report, "fit");
    const int last = published.rbegin()->first;
    EXPECT_EQ(static_cast<int>(fit.size()), last);
    EXPECT_EQ(report_str(run.report, "stop_reason"), "tol");
    for (const auto &[iteration, text] : published) {
      ASSERT_LE(iteration, static_cast<int>(fit.size()));
      EXPECT_EQ(digits("%.6e", fit[static_cast<std::size_t>(iteration - 1)]), text) << "iteration " << iteration;
    }
  }

  Tensor x_;
};

TEST_P(AminoAcid, Facts) {
  // Sum of 61305 squares: relative error below 61305 u / 2 in the norm, 4e-12.
  EXPECT_NEAR(tensor_norm(x_), 47991.950132089260, 47991.950132089260 * 4e-12);
  if (format() != "dense") {
    EXPECT_EQ(tensor_nnz(x_), 61305); // zeros are stated in the file, and kept
    EXPECT_EQ(tensor_nnz(x_) - get<int64_t>(td_tensor_get_i64, x_, "zeros"), 61282);
  }
}

// Tensor Toolbox for MATLAB, documentation of cp_als ("CP-ALS ... nvecs").
TEST_P(AminoAcid, ToolboxTraceWithTolerance1e4) {
  expect_trace(
      "1e-4",
      {{10, "9.334888e-01"}, {20, "9.604549e-01"}, {30, "9.712518e-01"}, {40, "9.741285e-01"}, {43, "9.744312e-01"}});
}

TEST_P(AminoAcid, ToolboxTraceWithTolerance1e6) {
  expect_trace("1e-6", {{50, "9.747733e-01"}, {60, "9.749128e-01"}, {70, "9.749430e-01"}, {73, "9.749461e-01"}});
}

INSTANTIATE_TEST_SUITE_P(O1, AminoAcid,
                         testing::ValuesIn(light() ? std::vector<Place>{{"blco", "cpu:2"}, {"dense", "cpu"}}
                                                   : places({"coo", "blco", "sorted", "dense"})),
                         place_name);

// Hundreds of iterations: not for the slow places.
using AminoAcidBest = AminoAcid;

// Tensor Toolbox, gcp_opt on the amino-acid data: the best rank-3 model.
TEST_P(AminoAcidBest, BestRank3Model) {
  double best_residual = HUGE_VAL, best_fit = 0;
  for (const char *seed : {"0", "1", "2"}) {
    const Fitted run =
        cpals(context(), x_, 3, Options{{"init", "random"}, {"seed", seed}, {"tol", "1e-9"}, {"max_iters", "1000"}});
    best_residual = std::min(best_residual, report_f64(run.report, "residual"));
    best_fit = std::max(best_fit, report_f64(run.report, "fit"));
    if (best_fit > 0.9749)
      break;
  }
  EXPECT_EQ(digits("%.6e", best_residual * best_residual), "1.445110e+06");
  EXPECT_EQ(digits("%.6f", best_fit), "0.974951");
}

INSTANTIATE_TEST_SUITE_P(O6, AminoAcidBest, testing::Values(Place{"sorted", "cpu"}, Place{"dense", "cpu:2"}),
                         place_name);

class Published : public OnPlace {
protected:
  /// Every nonzero cell of a model with small whole numbers.
  Entries cells_of(const Factors &factors) {
    const Bounded full = oracle_full(factors, std::vector<double>(static_cast<std::size_t>(factors.rank), 1.0));
    Entries e(factors.dims);
    std::vector<int64_t> c(factors.dims.size(), 0);
    for (const long double value : full.value) {
      if (value != 0)
        e.add(c, static_cast<double>(value));
      for (std::size_t m = 0; m < c.size() && ++c[m] == factors.dims[m]; ++m)
        c[m] = 0;
    }
    return e;
  }
};

Factors factors_from(std::vector<int64_t> dims, int64_t rank, std::vector<std::vector<double>> a) {
  Factors f(std::move(dims), rank);
  f.a = std::move(a);
  return f;
}

// GenTen's CP-ALS test: weights 2 sqrt(2) and 2 of normalized components that share an entry, from its start.
TEST_P(Published, O7RankTwoComesBack) {
  const Factors truth = factors_from({2, 3, 4}, 2, {{1, 1, 1, 0}, {1, 1, 0, 1, 0, 1}, {1, 0, 0, 1, 1, 1, 0, 0}});
  const Factors start = factors_from(
      {2, 3, 4}, 2, {{0.8, 0.2, 0.5, 0.5}, {0.5, 0.1, 0.5, 0.5, 0.5, 0.1}, {0.7, 0.7, 0.1, 0.1, 0.7, 0.1, 0.1, 0.7}});
  const Entries cells = cells_of(truth);
  ASSERT_EQ(cells.nnz(), 11);
  const Tensor x = make_tensor(context(), format(), cells);
  const Ktensor init = make_ktensor(context(), start, TD_F64, {2, 1});
  const Fitted run = cpals(context(), x, 2, Options{{"tol", "1e-12"}, {"max_iters", "500"}}, init);
  EXPECT_GE(report_f64(run.report, "fit"), 0.99);
  const auto w = weights_of(run.model);
  EXPECT_NEAR(w[0], 2.828427, 2e-3); // GenTen's own tolerance
  EXPECT_NEAR(w[1], 2.0, 2e-3);
  EXPECT_GT(score(run.model, make_ktensor(context(), truth)), 0.99);
}

TEST_P(Published, O7ZeroStartIsRefused) {
  Entries e({2, 3, 4});
  e.add({0, 1, 2}, 1);
  const Tensor x = make_tensor(context(), format(), e);
  Ktensor zero, model;
  check(td_ktensor_create(context(), 3, e.dims.data(), 2, TD_F64, zero.out()));
  EXPECT_EQ(td_cpals(context(), x, 2, zero, nullptr, nullptr, nullptr, model.out(), nullptr), TD_ERR_ARGUMENT);
  EXPECT_NE(last_error().find("zero"), std::string::npos) << last_error();
}

// pyttb's MTTKRP test: X = 1 .. 720, first index fastest, factors of ones. All sums are whole numbers below 2^24 and so
// exact in both types.
TEST_P(Published, O8SumsOfSlices) {
  const std::vector<std::vector<double>> published{{129600, 129960},
                                                   {86040, 86520, 87000},
                                                   {63270, 64350, 65430, 66510},
                                                   {45000, 48456, 51912, 55368, 58824},
                                                   {7260, 21660, 36060, 50460, 64860, 79260}};
  Random random(1);
  Entries cells = random_cells(random, {2, 3, 4, 5, 6}, TD_F64);
  std::iota(cells.values.begin(), cells.values.end(), 1.0);
  Factors ones(cells.dims, 2);
  for (auto &a : ones.a)
    std::fill(a.begin(), a.end(), 1.0);
  for (const td_type type : {TD_F32, TD_F64}) {
    const Tensor x = make_tensor(context(), format(), cells, {type, TD_I32, 1});
    for (int mode = 0; mode < 5; ++mode) {
      auto expected = published[static_cast<std::size_t>(mode)];
      expected.insert(expected.end(), expected.begin(), expected.end());
      EXPECT_EQ(mttkrp(context(), x, ones, mode, type), expected) << "mode " << mode;
    }
  }
}

// The Gram matrix of a rank-1 tensor at R = 2 is singular after the first sweep.
TEST_P(Published, OnesAtRankTwo) {
  Random random(1);
  Entries cells = random_cells(random, {2, 3, 4}, TD_F64);
  std::fill(cells.values.begin(), cells.values.end(), 1.0);
  const Fitted run = cpals(context(), make_tensor(context(), format(), cells), 2, Options{{"tol", "1e-10"}});
  EXPECT_NEAR(report_f64(run.report, "fit"), 1, 1e-7); // sqrt(u): the residual is a difference
  EXPECT_LE(report_f64(run.report, "fit"), 1);
  EXPECT_EQ(report_i64(run.report, "effective_rank"), 1);
  for (const double fit : report_series(run.report, "fit"))
    EXPECT_TRUE(std::isfinite(fit));
  for (const auto &a : factors_of(run.model).a)
    for (const double v : a)
      EXPECT_TRUE(std::isfinite(v));
}

// Strassen 1969: the seven products of 2 x 2 matrix multiplication. Mode 0 is A, mode 1 B, mode 2 C, each with its
// entries in the order 11, 12, 21, 22.
TEST_P(Published, StrassenIsExact) {
  const Factors strassen =
      factors_from({4, 4, 4}, 7,
                   {{1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, -1, 0, 1, 0, 0, 1, 0, -1},
                    {1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, -1, -1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1},
                    {1, 0, 0, 1, 0, 0, 1, -1, 0, 1, 0, 1, 1, 0, 1, 0, -1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0}});
  Entries product({4, 4, 4}); // C_ij = sum over k of A_ik B_kj
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j)
      for (int64_t k = 0; k < 2; ++k)
        product.add({2 * i + k, 2 * k + j, 2 * i + j}, 1);
  for (const td_type type : {TD_F32, TD_F64}) {
    const Tensor x = make_tensor(context(), format(), product, {type, TD_I64, 0});
    const Fit f = fit_of(context(), make_ktensor(context(), strassen, type), x);
    EXPECT_EQ(f.residual, 0);
    EXPECT_EQ(f.relative, 0);
    EXPECT_EQ(f.fit, 1);
    EXPECT_EQ(f.explained, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Published, testing::ValuesIn(places({"coo", "blco", "sorted", "dense"})), place_name);

} // namespace
