// The published traces of cp_als on the amino-acid data (oracles O1 and O6).
#include "unit/solver_make.hpp"

#include <fstream>

namespace {

using namespace td;
using namespace td::test;

TensorPointer aminoacid() {
  std::ifstream file(TD_TEST_DATA "/aminoacid_data.txt");
  std::string keyword;
  std::size_t order = 0;
  i64 nnz = 0;
  if (!(file >> keyword >> order))
    return nullptr;
  std::vector<i64> dims(order);
  for (i64 &d : dims)
    file >> d;
  file >> nnz;
  std::vector<std::vector<i64>> indices(order);
  std::vector<double> values;
  for (i64 k = 0; k < nnz; ++k) {
    for (auto &column : indices)
      file >> column.emplace_back();
    file >> values.emplace_back();
  }
  EXPECT_TRUE(file);
  std::vector<const void *> columns;
  for (const auto &column : indices)
    columns.push_back(column.data());
  return tensor::Tensor::make_sparse({dims, nnz, IndexType::i64, columns.data(), 0, ValueType::f64, values.data()},
                                     Options{}, 1, "");
}

class Aminoacid : public testing::Test {
protected:
  void SetUp() override {
    x = aminoacid();
    if (!x)
      GTEST_SKIP() << "no " TD_TEST_DATA "/aminoacid_data.txt";
  }

  std::vector<double> fits(const char *tol, int workers) {
    auto request = request_for(*x, 3, workers);
    request.backends = kernels::open_backends({kernels::DeviceSpec::Kind::cpu, workers, {}}, workers);
    set(request, {{"init", "nvecs"}, {"tol", tol}, {"max_iters", "200"}});
    const auto result = solvers::cpals(request);
    expect_sound(result);
    residual = result.report.residual.back();
    return result.report.fit;
  }

  static void expect_printed(double fit, const char *published) { EXPECT_EQ(fmt::format("{:.6e}", fit), published); }

  TensorPointer x;
  double residual = 0;
};

TEST_F(Aminoacid, NormIsAsPublished) { EXPECT_NEAR(x->facts().norm, 47991.950132089260, 1e-7); }

TEST_F(Aminoacid, TraceOfToolbox) {
  for (const int workers : {1, 2}) {
    const auto fit = fits("1e-4", workers);
    ASSERT_EQ(fit.size(), 43U);
    expect_printed(fit[9], "9.334888e-01");
    expect_printed(fit[19], "9.604549e-01");
    expect_printed(fit[29], "9.712518e-01");
    expect_printed(fit[39], "9.741285e-01");
    expect_printed(fit[42], "9.744312e-01");
  }
}

TEST_F(Aminoacid, TraceOfToolboxToATighterTolerance) {
  const auto fit = fits("1e-6", 1);
  ASSERT_EQ(fit.size(), 73U);
  expect_printed(fit[49], "9.747733e-01");
  expect_printed(fit[59], "9.749128e-01");
  expect_printed(fit[69], "9.749430e-01");
  expect_printed(fit[72], "9.749461e-01");
}

TEST_F(Aminoacid, BestModelOfRankThree) { // oracle O6
  const auto fit = fits("1e-10", 1);
  EXPECT_EQ(fmt::format("{:.6f}", fit.back()), "0.974951");
  EXPECT_EQ(fmt::format("{:.6e}", residual * residual), "1.445110e+06");
}

} // namespace
