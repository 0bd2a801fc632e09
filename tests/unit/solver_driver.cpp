// A method of a few lines in the driver: start, report, stopping, progress, checkpoints, resume and scaling are there
// for it as for CP-ALS.
#include <cmath>

#include "solvers/fit.hpp"
#include "unit/solver_make.hpp"

namespace {

using namespace td;
using namespace td::test;
using solvers::Iteration;
using solvers::Problem;
using solvers::StopReason;

/// The start's components with one common weight, whose distance from the best one each iteration multiplies by `rate`.
class Halving final : public Iteration {
public:
  Halving(const Problem &problem, kernels::Backend &backend, double rate) : norm_(problem.x.facts().norm), rate_(rate) {
    Ktensor unit = problem.start.copy();
    std::fill(unit.weights().begin(), unit.weights().end(), 1.0);
    inner_ = solvers::dot(backend, problem.x, unit);
    model_norm_ = unit.norm();
  }

  void update(i64 iteration) override {
    weight_ = inner_ / (model_norm_ * model_norm_) * (1 - std::pow(rate_, static_cast<double>(iteration) + 1));
  }

  Outcome measure() override {
    Outcome outcome;
    outcome.residual_squared =
        std::max(0.0, norm_ * norm_ - 2 * weight_ * inner_ + weight_ * weight_ * model_norm_ * model_norm_);
    return outcome;
  }

  void download(Ktensor &to) const override { std::fill(to.weights().begin(), to.weights().end(), weight_); }

  const Times &times() const noexcept override { return times_; }

private:
  double norm_, rate_, inner_ = 0, model_norm_ = 0, weight_ = 0;
  Times times_{0, 0, 0, {0, 0, 0}};
};

class HalvingMethod final : public solvers::Method {
public:
  explicit HalvingMethod(bool takes_any_start = true, double rate = 0.5)
      : takes_any_start_(takes_any_start), rate_(rate) {}
  std::string path() const override { return "method=halving"; }
  void check_start(const Ktensor *start, const std::function<bool(bool)> &) const override {
    if (start == nullptr && !takes_any_start_)
      throw_error(Status::argument, "halving: expected a start");
  }
  std::unique_ptr<Iteration> begin(const Problem &problem, kernels::Backend &backend, Communicator &) const override {
    return std::make_unique<Halving>(problem, backend, rate_);
  }

private:
  bool takes_any_start_;
  double rate_;
};

class SolverDriver : public testing::Test {
protected:
  Ktensor start_ = random_ktensor({6, 5, 4}, 2, 7);
  TensorPointer x_ = dense_tensor(random_ktensor({6, 5, 4}, 2, 8));

  solvers::RunRequest request(int workers = 1) {
    solvers::RunRequest request = request_for(*x_, 2, workers);
    request.init = &start_;
    set(request, {{"max_iters", "12"}, {"tol", "0"}, {"arrange", "0"}, {"fixsigns", "0"}});
    return request;
  }
};

TEST_F(SolverDriver, RunsAMethodToItsLimit) {
  for (const int workers : {1, 3}) {
    const solvers::RunResult result = solvers::run(request(workers), HalvingMethod());
    EXPECT_EQ(result.report.iterations, 12);
    EXPECT_EQ(result.report.stop_reason, StopReason::max_iters);
    EXPECT_EQ(result.report.workers, workers);
    EXPECT_TRUE(result.report.effective_rank.empty());
    ASSERT_EQ(result.report.fit.size(), 12U);
    EXPECT_TRUE(std::is_sorted(result.report.fit.begin(), result.report.fit.end()));
    const solvers::Fit fit = solvers::fit(*reference_backends(1).front(), *x_, result.model);
    EXPECT_NEAR(result.report.fit.back(), fit.fit, 1e-12);
  }
}

TEST_F(SolverDriver, StopsWhereTheFitSettlesOrTheCallerSays) {
  solvers::RunRequest settling = request();
  set(settling, {{"tol", "1e-3"}});
  const solvers::RunResult settled = solvers::run(settling, HalvingMethod());
  EXPECT_EQ(settled.report.stop_reason, StopReason::tol);
  EXPECT_LT(settled.report.iterations, 12);
  EXPECT_LT(settled.report.fit_change.back(), 1e-3);

  solvers::RunRequest watched = request();
  watched.progress = [](const solvers::Report &so_far) { return so_far.iterations < 3; };
  const solvers::RunResult stopped = solvers::run(watched, HalvingMethod());
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.report.iterations, 3);
}

// The squared residual is r^2 + c^2 rate^(2 k), so a change of the fit is from rate^2 to rate of the one before.
TEST_F(SolverDriver, SaysThatAFitCreeps) {
  start_ = random_ktensor({6, 5, 4}, 2, 8); // with which much of the tensor is explained
  solvers::RunRequest quick = request();
  set(quick, {{"tol", "1e-3"}});
  const solvers::RunResult settled = solvers::run(quick, HalvingMethod());
  ASSERT_EQ(settled.report.stop_reason, StopReason::tol);
  EXPECT_GT(settled.report.fit_growth, 0);
  EXPECT_LT(settled.report.fit_growth, 1e-3);
  EXPECT_EQ(settled.report.creeping, "");

  solvers::RunRequest slow = request();
  set(slow, {{"tol", "1e-3"}, {"max_iters", "1000"}});
  const HalvingMethod creeping(true, 0.98);
  const solvers::RunResult crept = solvers::run(slow, creeping);
  ASSERT_EQ(crept.report.stop_reason, StopReason::tol);
  EXPECT_NE(crept.report.creeping.find("% of the time before: about"), std::string::npos) << crept.report.creeping;
  set(slow, {{"tol", "1e-12"}});
  const double left = solvers::run(slow, creeping).report.fit.back() - crept.report.fit.back();
  EXPECT_GT(left, 1e-3);
  EXPECT_NEAR(crept.report.fit_growth / left, 1, 0.2);

  const std::string fewer = std::to_string(crept.report.iterations - 1);
  set(slow, {{"tol", "1e-3"}, {"max_iters", fewer.c_str()}});
  EXPECT_EQ(solvers::run(slow, creeping).report.creeping, ""); // it did not end by tol
}

TEST(SolverGrowth, FollowsTheLastChanges) {
  using solvers::Growth;
  const auto left = [](std::vector<double> fits, double error = 0) { return Growth::of(fits, error).left; };
  EXPECT_EQ(left({}), 0);
  EXPECT_EQ(left({0.5, 0.6}), 0);                      // one change has no ratio
  EXPECT_NEAR(left({0.5, 0.75, 0.875}), 0.125, 1e-15); // halves: as much again
  EXPECT_NEAR(left({0.1, 0.2, 0.3, 0.3025}), 0.0025 * 0.1581138830084190 / (1 - 0.1581138830084190), 1e-12);
  EXPECT_EQ(left({0.1, 0.2, 0.3, 0.4}), 0.6);      // equal changes: all that is left
  EXPECT_EQ(left({0.5, 0.51, 0.53}), 1 - 0.53);    // growing ones, too
  EXPECT_EQ(left({0.5, 0.6, 0.55}), 0);            // falls
  EXPECT_EQ(left({0.5, 0.4, 0.45}), 0);            // fell
  EXPECT_EQ(left({0.5, 0.5001, 0.5002}, 1e-4), 0); // within rounding
  EXPECT_GT(left({0.5, 0.5001, 0.5002}, 1e-6), 0.4);
  EXPECT_LE(left({0.5, 0.9, 0.999999}), 1 - 0.999999); // no fit is above 1
}

TEST_F(SolverDriver, GoesOnFromACheckpoint) {
  const solvers::RunResult whole = solvers::run(request(), HalvingMethod());
  std::optional<solvers::State> kept;
  solvers::RunRequest first = request();
  set(first, {{"max_iters", "5"}});
  first.save = [&](const solvers::State &state) {
    kept.emplace(
        solvers::State{state, state.factors.copy(), state.tensor_norm, state.settings, state.scales, state.weights});
    return std::string();
  };
  solvers::run(first, HalvingMethod());
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->settings.substr(0, 15), "method=halving\n");

  solvers::RunRequest rest = request();
  rest.init = nullptr;
  rest.resume = std::move(kept);
  const solvers::RunResult resumed = solvers::run(rest, HalvingMethod());
  EXPECT_EQ(resumed.report.resumed_from, 5);
  EXPECT_EQ(resumed.report.fit, whole.report.fit);
  EXPECT_EQ(resumed.model.weights()[0], whole.model.weights()[0]);

  rest.resume->settings = "method=another\n" + rest.resume->settings.substr(15);
  EXPECT_NE(refusal(Status::argument, [&] { solvers::run(rest, HalvingMethod()); }).find("method=another"),
            std::string::npos);
}

TEST_F(SolverDriver, ScalesWhatIsNearTheEndsOfTheRange) {
  const solvers::RunResult usual = solvers::run(request(), HalvingMethod());
  Ktensor large = random_ktensor({6, 5, 4}, 2, 8);
  for (double &w : large.weights())
    w *= 0x1p600;
  x_ = dense_tensor(large);
  const solvers::RunResult result = solvers::run(request(), HalvingMethod());
  for (std::size_t k = 0; k < 12; ++k)
    EXPECT_NEAR(result.report.fit[k], usual.report.fit[k], 1e-12);
  EXPECT_NEAR(result.model.weights()[0] * 0x1p-600, usual.model.weights()[0], 1e-12);
}

TEST_F(SolverDriver, AsksTheMethodWhetherItCanBegin) {
  solvers::RunRequest without = request();
  without.init = nullptr;
  EXPECT_EQ(refusal(Status::argument, [&] { solvers::run(without, HalvingMethod(false)); }),
            "halving: expected a start");
  EXPECT_EQ(solvers::run(without, HalvingMethod()).report.init, "random");
}

} // namespace
