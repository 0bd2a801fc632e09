// CP-ALS on tensors whose answer is known.
#include "unit/solver_make.hpp"

#include "solvers/fit.hpp"

namespace {

using namespace td;
using namespace td::test;
using solvers::RunResult;

// GenTen's test of CP-ALS (oracle O7): two columns a side, with weights 2 sqrt 2 and 2 when normalized.
Ktensor genten_model() {
  return make_ktensor({2, 3, 4}, {1, 1}, {{1, 1, 0, 1}, {1, 0, 1, 1, 1, 0}, {1, 0, 0, 1, 0, 1, 1, 0}});
}

TEST(CpalsCases, SmallTensorOfRankTwoComesBack) {
  const Ktensor truth = genten_model();
  const TensorPointer x = dense_tensor(truth);
  auto request = request_for(*x, 2);
  set(request, {{"tol", "1e-12"}, {"max_iters", "500"}});
  const RunResult result = solvers::cpals(request);
  expect_sound(result);
  EXPECT_GE(result.report.fit.back(), 0.99);
  Ktensor sorted = truth.copy();
  sorted.arrange();
  EXPECT_NEAR(result.model.weights()[0], sorted.weights()[0], 1e-3);
  EXPECT_NEAR(result.model.weights()[1], sorted.weights()[1], 1e-3);
  EXPECT_NEAR(score(truth, result.model, true).value, 1, 1e-3);
}

TEST(CpalsCases, ZeroStartIsRefused) {
  const TensorPointer x = dense_tensor(genten_model());
  Ktensor zero(x->dims(), 2, ValueType::f64);
  auto request = request_for(*x, 2);
  request.init = &zero;
  EXPECT_EQ(refusal(Status::argument, [&] { solvers::cpals(request); }),
            "init: factor 1 is zero in every entry and is used before it is computed; expected at least one nonzero");
  // The first factor of the mode order is computed before it is used.
  const Ktensor good = random_ktensor({2, 3, 4}, 2, 3);
  Ktensor first_zero = good.copy();
  std::memset(first_zero.factor(0).data, 0, sizeof(double) * 4);
  request.init = &first_zero;
  expect_sound(solvers::cpals(request));
}

TEST(CpalsCases, OnesAtRankTwo) {
  const std::vector<double> ones(24, 1.0);
  for (const TensorPointer &x : {dense_tensor<double>({2, 3, 4}, ones), sparse_tensor<double>({2, 3, 4}, ones)}) {
    auto request = request_for(*x, 2);
    const RunResult result = solvers::cpals(request);
    expect_sound(result);
    EXPECT_NEAR(result.report.fit.back(), 1, 1e-14);
    EXPECT_TRUE(result.report.converged);
    EXPECT_EQ(result.report.effective_rank.back(), 1); // both columns are the same after the first sweep
    EXPECT_EQ(result.report.effective_rank.size(), 3 * result.report.fit.size());
  }
}

TEST(CpalsCases, StrassensFactorsLeaveNothing) {
  // C = A B for 2 x 2 matrices, vec by rows: x(a, b, c) = 1 where entry a of A times entry b of B adds to entry c of C.
  std::vector<double> values(64, 0.0);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int k = 0; k < 2; ++k)
        values[static_cast<std::size_t>((2 * i + j) + 4 * (2 * j + k) + 16 * (2 * i + k))] = 1;
    }
  }
  // Strassen, Numer. Math. 13, 1969: seven products of sums of entries.
  const std::vector<double> a{1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, -1, 0, 1, 0, 0, 1, 0, -1};
  const std::vector<double> b{1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, -1, -1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1};
  const std::vector<double> c{1, 0, 0, 1, 0, 0, 1, -1, 0, 1, 0, 1, 1, 0, 1, 0, -1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0};
  const Ktensor strassen = make_ktensor({4, 4, 4}, std::vector<double>(7, 1.0), {a, b, c});
  const auto backend = kernels::reference::make_backend();
  for (const TensorPointer &x : {dense_tensor<double>({4, 4, 4}, values), sparse_tensor<double>({4, 4, 4}, values)}) {
    const solvers::Fit fit = solvers::fit(*backend, *x, strassen);
    EXPECT_EQ(fit.residual, 0);
    EXPECT_EQ(fit.fit, 1);
    EXPECT_EQ(solvers::dot(*backend, *x, strassen), 8);
    auto request = request_for(*x, 7);
    request.init = &strassen;
    const RunResult result = solvers::cpals(request);
    expect_sound(result);
    EXPECT_NEAR(result.report.fit.back(), 1, 1e-14);
    EXPECT_GE(result.report.exact_residuals, 1);
  }
}

TEST(CpalsCases, ZeroTensor) {
  const std::vector<double> zeros(24, 0.0);
  for (const TensorPointer &x : {dense_tensor<double>({2, 3, 4}, zeros), sparse_tensor<double>({2, 3, 4}, zeros)}) {
    for (const char *init : {"random", "nvecs"}) {
      auto request = request_for(*x, 2, 2);
      set(request, {{"init", init}});
      const RunResult result = solvers::cpals(request);
      expect_sound(result);
      EXPECT_EQ(result.report.fit.back(), 1);
      EXPECT_EQ(result.report.relative, 0);
      EXPECT_EQ(result.report.effective_rank.back(), 0);
      EXPECT_EQ(result.model.norm(), 0);
      EXPECT_TRUE(result.report.converged);
    }
  }
}

TEST(CpalsCases, RankAboveAllDims) {
  const TensorPointer x = dense_tensor(random_ktensor({2, 3, 2}, 4, 11));
  for (const char *init : {"random", "nvecs"}) {
    auto request = request_for(*x, 9);
    set(request, {{"init", init}, {"tol", "0"}, {"max_iters", "100"}});
    const RunResult result = solvers::cpals(request);
    expect_sound(result);
    EXPECT_GT(result.report.fit.back(), 0.999) << init; // rank 9 is more than any 2 x 3 x 2 tensor has
    EXPECT_LE(result.report.effective_rank.back(), 9);
  }
}

TEST(CpalsCases, DimsOfOneAndSingleEntries) {
  for (const std::vector<i64> &dims : {std::vector<i64>{1, 1}, {1, 5, 1}, std::vector<i64>(64, 1), {3, 1, 2}}) {
    i64 count = 1;
    for (i64 d : dims)
      count *= d;
    std::vector<double> values(static_cast<std::size_t>(count), 0.0);
    values.back() = -2.5;
    for (const TensorPointer &x : {dense_tensor(dims, values), sparse_tensor(dims, values)}) {
      for (const char *init : {"random", "nvecs"}) {
        auto request = request_for(*x, 2, 3);
        set(request, {{"init", init}});
        const RunResult result = solvers::cpals(request);
        expect_sound(result);
        EXPECT_NEAR(result.report.fit.back(), 1, 1e-14);
        EXPECT_NEAR(result.model.norm(), 2.5, 1e-14);
      }
    }
  }
}

TEST(CpalsCases, ExactRankIsRecovered) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    const Ktensor truth = random_ktensor({12, 10, 8, 3}, 3, seed);
    const TensorPointer x = dense_tensor(truth);
    auto request = request_for(*x, 3);
    set(request, {{"init", "nvecs"}, {"tol", "1e-13"}, {"max_iters", "2000"}});
    const RunResult result = solvers::cpals(request);
    expect_sound(result);
    EXPECT_NEAR(result.report.fit.back(), 1, 1e-6) << "seed " << seed;
    EXPECT_NEAR(score(truth, result.model, true).value, 1, 1e-5) << "seed " << seed;
  }
}

TEST(CpalsCases, FitIsMonotone) {
  for (const unsigned seed : {4U, 5U}) {
    const TensorPointer x = dense_tensor(random_ktensor({7, 6, 5}, 8, seed));
    auto request = request_for(*x, 4);
    set(request, {{"tol", "0"}, {"max_iters", "60"}});
    const RunResult result = solvers::cpals(request);
    expect_sound(result);
    for (std::size_t k = 1; k < result.report.fit.size(); ++k) // each update solves its least squares problem
      EXPECT_GE(result.report.fit[k], result.report.fit[k - 1] - 1e-13) << "seed " << seed << ", iteration " << k;
  }
}

TEST(CpalsCases, SinglePrecision) {
  const auto values = full_array(random_ktensor({9, 8, 7}, 2, 21));
  const TensorPointer x = dense_tensor<float>({9, 8, 7}, std::vector<float>(values.begin(), values.end()));
  auto request = request_for(*x, 2);
  set(request, {{"tol", "1e-7"}, {"max_iters", "500"}, {"init", "nvecs"}});
  const RunResult result = solvers::cpals(request);
  expect_sound(result);
  EXPECT_EQ(result.model.type(), ValueType::f32);
  EXPECT_GT(result.report.fit.back(), 0.9999);
  EXPECT_GE(result.report.exact_residuals, 1); // the quick formula has three digits above 1 - 0.015
}

} // namespace
