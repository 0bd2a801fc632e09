// What the options of CP-ALS do.
#include "unit/solver_make.hpp"

#include "solvers/start.hpp"

namespace {

using namespace td;
using namespace td::test;
using solvers::RunResult;

TensorPointer noisy() { return dense_tensor(random_ktensor({4, 3, 5}, 7, 51)); }

TEST(CpalsOptions, ModeListsAreChecked) {
  const TensorPointer x = noisy();
  auto request = request_for(*x, 2);
  const auto with = [&](const char *name, const char *value) {
    request.options = {};
    set(request, {{name, value}});
    return refusal(Status::option_range, [&] { solvers::cpals(request); });
  };
  EXPECT_EQ(with("mode_order", "0,1"), "option 'mode_order' = \"0,1\": 2 modes; expected each of 0 .. 2 once");
  EXPECT_EQ(with("mode_order", "0,1,1"), "option 'mode_order' = \"0,1,1\": mode 1 is there twice");
  EXPECT_EQ(with("mode_order", "0,1,3"),
            "option 'mode_order' = \"0,1,3\": '3' is not a mode; expected numbers in 0 .. 2");
  EXPECT_EQ(with("mode_order", "0,,1"), "option 'mode_order' = \"0,,1\": '' is not a mode; expected numbers in 0 .. 2");
  EXPECT_EQ(with("mode_order", "0,1,"), "option 'mode_order' = \"0,1,\": '' is not a mode; expected numbers in 0 .. 2");
  EXPECT_EQ(with("fixed_modes", "x"), "option 'fixed_modes' = \"x\": 'x' is not a mode; expected numbers in 0 .. 2");
  EXPECT_EQ(with("fixed_modes", "2, 0 ,1"),
            "option 'fixed_modes' = \"2, 0 ,1\", counting from 0: all modes; expected at least one to be updated");
  request.options = {};
  set(request, {{"fixed_modes", "1"}});
  EXPECT_EQ(refusal(Status::argument, [&] { solvers::cpals(request); }),
            "option 'fixed_modes' = \"1\", counting from 0, without a start: expected init or resume");
}

TEST(CpalsOptions, FixedModesStay) {
  const TensorPointer x = noisy();
  const Ktensor init = random_ktensor({4, 3, 5}, 2, 52);
  auto request = request_for(*x, 2, 2);
  request.init = &init;
  set(request, {{"fixed_modes", "2,0"}, {"arrange", "0"}, {"fixsigns", "0"}, {"tol", "0"}, {"max_iters", "5"}});
  const RunResult result = solvers::cpals(request);
  for (i64 r = 0; r < 2; ++r) {
    EXPECT_EQ(column(result.model, 0, r), column(init, 0, r));
    EXPECT_EQ(column(result.model, 2, r), column(init, 2, r));
    EXPECT_NE(column(result.model, 1, r), column(init, 1, r));
  }
  // One linear least squares problem: solved by the first iteration.
  EXPECT_NEAR(result.report.fit.front(), result.report.fit.back(), 1e-14);
  EXPECT_EQ(result.report.effective_rank.size(), 5U);
  // Five iterations of three modes, of which the middle one alone takes time; the parts are all of the whole, but for
  // the rounding of five sums.
  const std::vector<double> &mttkrp = result.report.mttkrp_seconds;
  ASSERT_EQ(mttkrp.size(), 15U);
  double sum = 0;
  for (std::size_t k = 0; k < mttkrp.size(); ++k) {
    EXPECT_EQ(mttkrp[k] > 0, k % 3 == 1) << k;
    sum += mttkrp[k];
  }
  EXPECT_NEAR(sum, result.report.seconds_mttkrp, 1e-14 * sum);
}

TEST(CpalsOptions, ModeOrderIsFollowed) {
  // A tensor with its modes turned round and the mode order likewise: the same numbers.
  const Ktensor k = random_ktensor({4, 3, 5}, 7, 53);
  const Ktensor start = random_ktensor({4, 3, 5}, 2, 54);
  const auto turned = [](const Ktensor &a) {
    std::vector<std::vector<double>> factors;
    std::vector<i64> dims;
    for (const int m : {2, 0, 1}) {
      dims.push_back(a.dims()[static_cast<std::size_t>(m)]);
      auto &f = factors.emplace_back();
      for (i64 r = 0; r < a.rank(); ++r) {
        const auto c = column(a, m, r);
        f.insert(f.end(), c.begin(), c.end());
      }
    }
    return make_ktensor(dims, {a.weights().begin(), a.weights().end()}, factors);
  };
  const TensorPointer x = dense_tensor(k);
  const TensorPointer y = dense_tensor(turned(k));
  auto plain = request_for(*y, 2);
  const Ktensor turned_start = turned(start);
  plain.init = &turned_start;
  auto ordered = request_for(*x, 2);
  ordered.init = &start;
  set(ordered, {{"mode_order", "2,0,1"}});
  const auto a = solvers::cpals(plain).report.fit;
  const auto b = solvers::cpals(ordered).report.fit;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-12);
}

TEST(CpalsOptions, RidgeByHand) {
  // x = (6, 8) x (1), rank 1, factor 1 fixed to (2): minimise |x - 2 a|^2 + 4 |a|^2, so a = 2 x / (4 + 4) = x / 4.
  const TensorPointer x = dense_tensor<double>({2, 1}, {6, 8});
  const Ktensor init = make_ktensor({2, 1}, {1}, {{1, 1}, {2}});
  auto request = request_for(*x, 1);
  request.init = &init;
  set(request, {{"fixed_modes", "1"}, {"ridge", "4"}, {"max_iters", "1"}});
  const RunResult result = solvers::cpals(request);
  EXPECT_NEAR(result.model.weights()[0], 5, 1e-14); // |x| / 4 * 2
  EXPECT_NEAR(result.report.fit.back(), 0.5, 1e-14);
  EXPECT_NEAR(result.report.explained, 0.75, 1e-14);
}

TEST(CpalsOptions, StartsWeightsCount) {
  // With the first factor fixed its weights show in the answer.
  const TensorPointer x = dense_tensor<double>({1, 2}, {6, 8});
  const Ktensor init = make_ktensor({1, 2}, {4}, {{0.5}, {1, 1}});
  auto request = request_for(*x, 1);
  request.init = &init;
  set(request, {{"fixed_modes", "0"}, {"arrange", "0"}, {"max_iters", "1"}});
  const RunResult result = solvers::cpals(request);
  EXPECT_EQ(column(result.model, 0, 0), (std::vector<double>{2}));
  EXPECT_NEAR(result.model.weights()[0], 5, 1e-14); // |(3, 4)|
}

TEST(CpalsOptions, InitIsChecked) {
  const TensorPointer x = noisy();
  const Ktensor wrong = random_ktensor({4, 3, 6}, 2, 1), order = random_ktensor({4, 3}, 2, 1),
                rank = random_ktensor({4, 3, 5}, 3, 1);
  auto request = request_for(*x, 2);
  request.init = &wrong;
  EXPECT_EQ(refusal(Status::shape, [&] { solvers::cpals(request); }), "init: dims[2] = 6; expected the tensor's 5");
  request.init = &order;
  EXPECT_EQ(refusal(Status::shape, [&] { solvers::cpals(request); }), "init: order 2; expected the tensor's 3");
  request.init = &rank;
  EXPECT_EQ(refusal(Status::shape, [&] { solvers::cpals(request); }), "init: rank 3; expected 2");
  request.init = nullptr;
  request.rank = 0;
  EXPECT_EQ(refusal(Status::shape, [&] { solvers::cpals(request); }), "rank = 0: expected rank >= 1");
}

} // namespace
