// Numbers at the ends of the range, through CP-ALS and the fit.
#include "unit/solver_make.hpp"

#include <limits>

#include "solvers/fit.hpp"
#include "solvers/magnitude.hpp"

namespace {

using namespace td;
using namespace td::test;
using solvers::Fit;
using solvers::RunResult;

template <class T> std::vector<T> times(const std::vector<double> &values, int exponent) {
  std::vector<T> out;
  for (double v : values)
    out.push_back(static_cast<T>(std::ldexp(v, exponent)));
  return out;
}

template <class T> void expect_same_run(const std::vector<int> &exponents) {
  const std::vector<i64> dims{5, 4, 3};
  const auto values = full_array(random_ktensor(dims, 6, 71));
  for (const char *init : {"random", "nvecs"}) {
    const TensorPointer plain = dense_tensor(dims, times<T>(values, 0));
    auto request = request_for(*plain, 2, 2);
    set(request, {{"tol", "0"}, {"max_iters", "10"}, {"init", init}});
    const RunResult expected = solvers::cpals(request);
    for (const int e : exponents) {
      for (const TensorPointer &x :
           {dense_tensor(dims, times<T>(values, e)), sparse_tensor(dims, times<T>(values, e))}) {
        SCOPED_TRACE(fmt::format("{}, 2^{}", init, e));
        request.tensor = x.get();
        const RunResult result = solvers::cpals(request);
        expect_sound(result);
        for (std::size_t k = 0; k < 10; ++k)
          EXPECT_NEAR(result.report.fit[k], expected.report.fit[k], 1e4 * epsilon_of(value_type_of<T>));
        EXPECT_NEAR(std::ldexp(result.model.weights()[0], -e) / expected.model.weights()[0], 1,
                    1e5 * epsilon_of(value_type_of<T>));
        EXPECT_NEAR(std::ldexp(result.report.residual.back(), -e) / expected.report.residual.back(), 1,
                    1e5 * epsilon_of(value_type_of<T>));
      }
    }
  }
}

// A power of two changes no digits, so the runs are those of the plain tensor with another scale.
TEST(Magnitude, CpalsDoesNotMindTheScale) { expect_same_run<double>({1000, 600, 140, -140, -600, -950}); }

TEST(Magnitude, CpalsDoesNotMindTheScaleInSinglePrecision) { expect_same_run<float>({120, 58, -58, -90}); }

TEST(Magnitude, ACopyIsStoredAsTheTensorIs) {
  const TensorPointer x =
      sparse_tensor(std::vector<i64>{5, 4, 3}, std::vector<double>(60, 1e300), "blco", "none", "rows", "atomic");
  const solvers::ScaledTensor copy(*x, 990, x->type(), 1);
  EXPECT_NE(&*copy, x.get());
  EXPECT_EQ(copy->format(), plan::Format::blco);
  EXPECT_EQ(copy->settings().sharding, plan::ShardingRule::rows);
  EXPECT_EQ(copy->settings().conflicts, kernels::Conflicts::atomic);
}

TEST(Magnitude, FitOfHugeAndTinyThings) {
  const auto backend = kernels::reference::make_backend();
  const Ktensor model = random_ktensor({5, 4, 3}, 2, 72);
  const TensorPointer x = dense_tensor<double>({5, 4, 3}, full_array(random_ktensor({5, 4, 3}, 3, 73)));
  const Fit plain = solvers::fit(*backend, *x, model);
  const auto values = full_array(random_ktensor({5, 4, 3}, 3, 73));
  for (const int e : {990, 300, -300, -900}) {
    Ktensor scaled = model.copy();
    for (double &w : scaled.weights())
      w = std::ldexp(w, e);
    const TensorPointer y = dense_tensor({5, 4, 3}, times<double>(values, e));
    const Fit fit = solvers::fit(*backend, *y, scaled);
    EXPECT_NEAR(fit.fit, plain.fit, 1e-12) << "2^" << e;
    EXPECT_NEAR(std::ldexp(fit.residual, -e), plain.residual, 1e-12) << "2^" << e;
    // Against the unscaled tensor: the larger one decides.
    const Fit mixed = solvers::fit(*backend, *x, scaled);
    EXPECT_FALSE(std::isnan(mixed.fit) || std::isnan(mixed.explained) || std::isnan(mixed.relative));
    if (e < 0)
      EXPECT_NEAR(mixed.relative, 1, 1e-12);
    else
      EXPECT_NEAR(mixed.residual / scaled.norm(), 1, 1e-12);
  }
}

// (1 + 1e-9) - 1 = 1e-9 of a billion is all of the model; in f32 nothing would be left of it.
TEST(Magnitude, AModelInDoubleIsNotRounded) {
  const auto backend = kernels::reference::make_backend();
  const Ktensor model = make_ktensor({2, 2}, {1e9, -1e9}, {{1 + 1e-9, 1 + 1e-9, 1, 1}, {1, 1, 1, 1}});
  const std::vector<float> ones(4, 1);
  for (const TensorPointer &x : {dense_tensor<float>({2, 2}, ones), sparse_tensor<float>({2, 2}, ones)}) {
    EXPECT_NEAR(solvers::fit(*backend, *x, model).fit, 1, 1e-6); // 1e9 times a rounding of 1
    EXPECT_NEAR(solvers::dot(*backend, *x, model), 4, 4e-6);
  }
}

// The scale of a zero model means nothing: the tensor decides.
TEST(Magnitude, FitOfAZeroModel) {
  const auto backend = kernels::reference::make_backend();
  const Ktensor zero = make_ktensor({2, 2}, {0}, {{1, 1}, {1, 1}});
  for (const double v : {1e-200, 1e-170, 1.0, 1e170}) {
    const TensorPointer x = dense_tensor<double>({2, 2}, {v, v, v, v});
    const Fit fit = solvers::fit(*backend, *x, zero);
    EXPECT_EQ(fit.fit, 0);
    EXPECT_NEAR(fit.residual / v, 2, 1e-12);
    EXPECT_EQ(solvers::dot(*backend, *x, zero), 0);
  }
}

TEST(Magnitude, ModelsWithExtremeFactorsAreComparedAsTheyAre) {
  const auto backend = kernels::reference::make_backend();
  // 1e300 * 1e-300 * ... = 6 and 8, and a product that overflows on the way to 0.
  const Ktensor model =
      make_ktensor({2, 1, 2}, {1, 1e300}, {{6e300, 8e300, 1e300, 1e300}, {1e-300, 1e300}, {1, 0, 0, 0}});
  const TensorPointer x = dense_tensor<double>({2, 1, 2}, {6, 8, 0, 0});
  const Fit fit = solvers::fit(*backend, *x, model);
  EXPECT_NEAR(fit.fit, 1, 1e-14);
  EXPECT_NEAR(solvers::dot(*backend, *x, model), 100, 1e-12);
}

TEST(Magnitude, LargestNumbersAreRefusedNotNaN) {
  const double most = std::numeric_limits<double>::max();
  const TensorPointer x = dense_tensor<double>({2, 2}, {most, most, most, most}); // its norm is above the largest
  auto request = request_for(*x, 1);
  try {
    expect_sound(solvers::cpals(request));
    ADD_FAILURE();
  } catch (const Error &e) {
    EXPECT_EQ(e.status(), Status::numerical) << e.what();
  }
}

TEST(Magnitude, OverflowOfAStartNamesIterationAndMode) {
  const TensorPointer x = dense_tensor<double>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Ktensor huge = make_ktensor({2, 2, 2}, {1}, {{1, 1}, {1e300, 1}, {1, 1}});
  auto request = request_for(*x, 1);
  request.init = &huge;
  set(request, {{"fixed_modes", "1"}}); // the columns of others are brought into range
  const std::string text = refusal(Status::numerical, [&] { solvers::cpals(request); });
  EXPECT_EQ(text.find("iteration 1, mode 0: "), 0U) << text;
}

// A square that may be off by its error in both directions: by hand of 25 +- 9, and of 4 +- 5, which may be 0.
TEST(ResidualSquared, ErrorOfTheRoot) {
  EXPECT_DOUBLE_EQ((solvers::ResidualSquared{25, 9}).root_error(), 1);
  EXPECT_DOUBLE_EQ((solvers::ResidualSquared{4, 5}).root_error(), 2);
  EXPECT_DOUBLE_EQ((solvers::ResidualSquared{0, 9}).root_error(), 3);
  EXPECT_DOUBLE_EQ((solvers::ResidualSquared{-1, 9}).root_error(), 3);
  EXPECT_EQ((solvers::ResidualSquared{0, 0}).root_error(), 0);
}

TEST(FitFrom, ByHand) {
  const Fit f = solvers::fit_from(5, 16);
  EXPECT_DOUBLE_EQ(f.fit, 0.2);
  EXPECT_DOUBLE_EQ(f.explained, 1 - 16.0 / 25);
  EXPECT_DOUBLE_EQ(f.relative, 0.8);
  EXPECT_EQ(f.residual, 4);
  EXPECT_EQ(solvers::fit_from(5, -1e-9).fit, 1);
  EXPECT_EQ(solvers::fit_from(0, 0).fit, 1);
  EXPECT_EQ(solvers::fit_from(0, 4).relative, 1);
  EXPECT_EQ(solvers::fit_from(0, 4).explained, 0);
  EXPECT_EQ(solvers::fit_from(0, 4).residual, 2);
}

} // namespace
