// Stopping, checkpoints, and going on from them.
#include "solvers/fit.hpp"
#include "unit/solver_make.hpp"

#include <thread>

namespace {

using namespace td;
using namespace td::test;
using solvers::RunRequest;
using solvers::RunResult;
using solvers::State;

TensorPointer noisy() { return dense_tensor(random_ktensor({6, 7, 5}, 9, 41)); }

State copy_of(const State &s) { return {s, s.factors.copy(), s.tensor_norm, s.settings, s.scales, s.weights}; }

/// The state at the end of a run.
State state_after(const tensor::Tensor &x, const char *iterations, int workers,
                  std::initializer_list<std::pair<const char *, const char *>> options = {}) {
  auto request = request_for(x, 4, workers);
  State last;
  request.save = [&](const State &s) {
    last = copy_of(s);
    return std::string();
  };
  set(request, {{"tol", "0"}, {"max_iters", iterations}, {"checkpoint_iters", "0"}});
  set(request, options);
  solvers::cpals(request);
  return last;
}

TEST(CpalsResume, TwentyAndThirtyAreFifty) {
  const TensorPointer x = noisy();
  for (const int workers : {1, 3}) {
    for (const char *deterministic : {"0", "1"}) {
      SCOPED_TRACE(fmt::format("{} workers, deterministic {}", workers, deterministic));
      auto whole = request_for(*x, 4, workers);
      set(whole, {{"tol", "0"}, {"max_iters", "50"}, {"deterministic", deterministic}});
      const RunResult expected = solvers::cpals(whole);

      auto rest = request_for(*x, 4, workers);
      rest.options = whole.options;
      rest.resume = state_after(*x, "20", workers, {{"deterministic", deterministic}});
      EXPECT_EQ(rest.resume->iterations, 20);
      const RunResult result = solvers::cpals(rest);
      EXPECT_EQ(result.report.resumed_from, 20);
      EXPECT_EQ(result.report.iterations, 50);
      EXPECT_EQ(result.report.init, "resume");
      EXPECT_EQ(result.report.fit, expected.report.fit);
      EXPECT_EQ(result.report.fit_change, expected.report.fit_change);
      EXPECT_EQ(result.report.residual, expected.report.residual);
      EXPECT_EQ(result.report.effective_rank, expected.report.effective_rank);
      EXPECT_TRUE(
          std::equal(result.model.weights().begin(), result.model.weights().end(), expected.model.weights().begin()));
      for (int m = 0; m < 3; ++m) {
        for (i64 r = 0; r < 4; ++r)
          EXPECT_EQ(column(result.model, m, r), column(expected.model, m, r));
      }
    }
  }
}

// A partial product of the sweep before serves the first updates of the next: it is computed again from the factors
// that it was computed from.
TEST(CpalsResume, PartialProductsCrossSweeps) {
  const Ktensor k = random_ktensor({6, 7, 5}, 9, 41);
  for (const char *groups : {"multi-sweep", "1,2|0"})
    for (const int workers : {1, 3})
      for (const char *after : {"20", "21", "22"}) {
        SCOPED_TRACE(fmt::format("groups {}, {} workers, after {}", groups, workers, after));
        const TensorPointer x = dense_tensor({6, 7, 5}, full_array(k), groups);
        auto whole = request_for(*x, 4, workers);
        set(whole, {{"tol", "0"}, {"max_iters", "30"}});
        const RunResult expected = solvers::cpals(whole);
        auto rest = request_for(*x, 4, workers);
        rest.options = whole.options;
        rest.resume = state_after(*x, after, workers);
        const RunResult result = solvers::cpals(rest);
        EXPECT_EQ(result.report.fit, expected.report.fit);
        EXPECT_EQ(result.report.residual, expected.report.residual);
        for (int m = 0; m < 3; ++m)
          for (i64 r = 0; r < 4; ++r)
            EXPECT_EQ(column(result.model, m, r), column(expected.model, m, r));
      }
}

// Whoever reads a checkpoint as a ktensor has the model; who goes on from it has the columns' scales, too.
TEST(CpalsResume, ACheckpointIsTheModelWithScalesApart) {
  const TensorPointer x = noisy();
  const State state = state_after(*x, "20", 1);
  ASSERT_EQ(state.scales.size(), 12);
  EXPECT_TRUE(std::any_of(state.scales.begin(), state.scales.end(), [](double t) { return t != 1; }));
  const auto backend = reference_backends(1).front();
  EXPECT_NEAR(solvers::fit(*backend, *x, state.factors).fit, state.fit.back(), 1e-12);

  auto request = request_for(*x, 4);
  set(request, {{"tol", "0"}, {"max_iters", "25"}});
  request.resume = copy_of(state);
  const RunResult expected = solvers::cpals(request);
  // Versions that divided in each update left no scales.
  request.resume->scales.clear();
  request.resume->weights.clear();
  for (int m = 0; m < 3; ++m)
    for (i64 i = 0; i < x->dims()[static_cast<std::size_t>(m)]; ++i)
      for (i64 r = 0; r < 4; ++r)
        request.resume->factors.factor(m).row<double>(i)[r] /= state.scales[static_cast<std::size_t>(4 * m + r)];
  std::copy(state.weights.begin(), state.weights.end(), request.resume->factors.weights().begin());
  const RunResult result = solvers::cpals(request);
  for (std::size_t i = 20; i < 25; ++i)
    EXPECT_NEAR(result.report.fit[i], expected.report.fit[i], 1e-13);
}

TEST(CpalsResume, ScalesThatCannotBeAreRefused) {
  const TensorPointer x = noisy();
  const State state = state_after(*x, "3", 1);
  auto request = request_for(*x, 4);
  const auto with = [&](auto &&change) {
    request.resume = copy_of(state);
    change(*request.resume);
    return refusal(Status::io, [&] { solvers::cpals(request); });
  };
  EXPECT_EQ(with([](State &s) { s.scales.pop_back(); }),
            "resume: the checkpoint's 'scales' holds 11 numbers; expected 12");
  EXPECT_EQ(with([](State &s) { s.scales[3] = 0; }),
            "resume: the checkpoint's 'scales' [3] is 0; expected a number above 0");
  EXPECT_EQ(with([](State &s) { s.weights[1] = -1; }),
            "resume: the checkpoint's 'weights' [1] is -1; expected a number of at least 0");
  EXPECT_EQ(with([](State &s) { s.weights.clear(); }),
            "resume: the checkpoint has 'scales' alone; expected 'scales' and 'weights', or neither");
}

TEST(CpalsResume, NothingLeftToDoGivesTheModel) {
  const TensorPointer x = noisy();
  auto request = request_for(*x, 4);
  set(request, {{"tol", "0"}, {"max_iters", "20"}});
  const RunResult expected = solvers::cpals(request);
  request.resume = state_after(*x, "20", 1);
  const RunResult result = solvers::cpals(request);
  EXPECT_EQ(result.report.stop_reason, solvers::StopReason::max_iters);
  EXPECT_EQ(result.report.iterations, 20);
  EXPECT_EQ(column(result.model, 1, 2), column(expected.model, 1, 2));
  EXPECT_NEAR(result.report.relative, expected.report.relative, 1e-15);

  request.resume = state_after(*x, "20", 1);
  set(request, {{"tol", "1"}, {"max_iters", "50"}});
  EXPECT_EQ(solvers::cpals(request).report.stop_reason, solvers::StopReason::tol);
}

TEST(CpalsResume, OtherRunsCheckpointsAreRefused) {
  const TensorPointer x = noisy();
  auto request = request_for(*x, 4);
  set(request, {{"ridge", "0.5"}});
  request.resume = state_after(*x, "2", 1);
  EXPECT_EQ(refusal(Status::argument, [&] { solvers::cpals(request); }),
            "resume: the checkpoint was made with ridge=0, this run has ridge=0.5; expected the same");
  set(request, {{"ridge", "0"}});
  request.rank = 5;
  EXPECT_EQ(refusal(Status::shape, [&] { solvers::cpals(request); }), "resume: rank 4; expected 5");
  const TensorPointer other = dense_tensor(random_ktensor({6, 7, 5}, 9, 42));
  request.rank = 4;
  request.tensor = other.get();
  refusal(Status::shape, [&] { solvers::cpals(request); });
  const TensorPointer longer = dense_tensor(random_ktensor({6, 8, 5}, 9, 42));
  request.tensor = longer.get();
  EXPECT_EQ(refusal(Status::shape, [&] { solvers::cpals(request); }), "resume: dims[1] = 7; expected the tensor's 8");
}

TEST(CpalsStops, WhenTheCallbackSaysSo) {
  const TensorPointer x = noisy();
  for (const int workers : {1, 2}) {
    auto request = request_for(*x, 4, workers);
    set(request, {{"tol", "0"}});
    std::vector<double> heard;
    const auto caller = std::this_thread::get_id();
    request.progress = [&](const solvers::Report &so_far) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(static_cast<std::size_t>(so_far.iterations), so_far.fit.size());
      heard.push_back(so_far.fit.back());
      return heard.size() < 3;
    };
    const RunResult result = solvers::cpals(request);
    EXPECT_TRUE(result.stopped);
    EXPECT_EQ(result.report.stop_reason, solvers::StopReason::callback);
    EXPECT_EQ(result.report.fit, heard);
    expect_sound(result);
  }
}

TEST(CpalsStops, WhenTimeIsUp) {
  const TensorPointer x = noisy();
  auto request = request_for(*x, 4, 2);
  set(request, {{"tol", "0"}, {"max_seconds", "1e-9"}, {"max_iters", "1000"}});
  const RunResult result = solvers::cpals(request);
  EXPECT_EQ(result.report.stop_reason, solvers::StopReason::max_seconds);
  EXPECT_EQ(result.report.iterations, 1);
  EXPECT_FALSE(result.stopped);
}

TEST(CpalsStops, CheckpointsComeWhenAskedFor) {
  const TensorPointer x = noisy();
  auto request = request_for(*x, 4, 2);
  std::vector<i64> saved;
  request.save = [&](const State &s) {
    saved.push_back(s.iterations);
    return std::string();
  };
  set(request, {{"tol", "0"}, {"max_iters", "7"}, {"checkpoint_iters", "3"}});
  solvers::cpals(request);
  EXPECT_EQ(saved, (std::vector<i64>{3, 6, 7})); // and at the end
  saved.clear();
  set(request, {{"max_iters", "6"}});
  solvers::cpals(request);
  EXPECT_EQ(saved, (std::vector<i64>{3, 6}));
  saved.clear();
  set(request, {{"checkpoint_iters", "0"}, {"checkpoint_seconds", "1e-9"}, {"max_iters", "2"}});
  solvers::cpals(request);
  EXPECT_EQ(saved, (std::vector<i64>{1, 2}));
}

} // namespace
