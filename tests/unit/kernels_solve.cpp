// The pseudo-inverse of the normal equations: well, badly and not conditioned.
#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

using kernels::failure_text;
using kernels::SolveFailure;
using kernels::SolveRecord;
using Numbers = std::vector<double>;

Numbers pseudo_inverse(const Numbers &v, double cutoff, SolveRecord &record) {
  const auto rank = static_cast<i64>(std::lround(std::sqrt(static_cast<double>(v.size()))));
  Numbers p(v.size(), std::nan(""));
  kernels::reference::make_backend()->pseudo_inverse(v.data(), rank, cutoff, p.data(), &record);
  return p;
}

void expect_near(const Numbers &got, const Numbers &expected, double tolerance) {
  for (std::size_t k = 0; k < got.size(); ++k)
    EXPECT_NEAR(got[k], expected[k], tolerance) << "at " << k;
}

constexpr double cutoff = 1e-12;

TEST(KernelsSolve, PositiveDefinite) {
  SolveRecord record;
  expect_near(pseudo_inverse({4, 2, 2, 3}, cutoff, record), {0.375, -0.25, -0.25, 0.5}, 1e-15);
  EXPECT_EQ(record.effective_rank, 2);
  EXPECT_EQ(record.used_eigen, 0);
}

TEST(KernelsSolve, SingularGivesMoorePenrose) { // ones(2, 2) = 2 q q^T, so its pseudo-inverse is q q^T / 2
  SolveRecord record;
  expect_near(pseudo_inverse({1, 1, 1, 1}, cutoff, record), {0.25, 0.25, 0.25, 0.25}, 1e-15);
  EXPECT_EQ(record.effective_rank, 1);
  EXPECT_EQ(record.used_eigen, 1);
}

TEST(KernelsSolve, ZeroColumnAndZeroMatrix) {
  SolveRecord record;
  expect_near(pseudo_inverse({2, 0, 0, 0}, cutoff, record), {0.5, 0, 0, 0}, 1e-15);
  EXPECT_EQ(record.effective_rank, 1);
  EXPECT_EQ(pseudo_inverse({0, 0, 0, 0}, cutoff, record), (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(record.effective_rank, 0);
}

TEST(KernelsSolve, IllConditionedDropsSmallEigenvalues) {
  SolveRecord record;
  expect_near(pseudo_inverse({1, 0, 0, 1e-14}, cutoff, record), {1, 0, 0, 0}, 1e-15);
  EXPECT_EQ(record.effective_rank, 1);
  EXPECT_EQ(record.used_eigen, 1);
}

TEST(KernelsSolve, ScaleDoesNotMatter) { // powers of two, so the numbers stay exact
  SolveRecord record;
  for (const double scale : {0x1p-1000, 0x1p-60, 0x1p60, 0x1p1000}) {
    Numbers v{4, 2, 2, 3};
    for (double &x : v)
      x *= scale;
    Numbers p = pseudo_inverse(v, cutoff, record);
    for (double &x : p)
      x *= scale;
    expect_near(p, {0.375, -0.25, -0.25, 0.5}, 1e-15);
  }
}

TEST(KernelsSolve, RecordsWhatIsNotFinite) {
  SolveRecord record;
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(std::isnan(pseudo_inverse({1, 0, 0, bad}, cutoff, record)[0]));
    EXPECT_EQ(record.failure, SolveFailure::not_finite);
    EXPECT_NE(failure_text(record, 2).find("at (1, 1)"), std::string::npos) << failure_text(record, 2);
  }
  EXPECT_TRUE(std::isnan(pseudo_inverse({0x1p-1070}, cutoff, record)[0])); // the inverse is beyond f64
  EXPECT_EQ(record.failure, SolveFailure::overflow);
  EXPECT_EQ(record.value, 0x1p-1070);
  EXPECT_NE(failure_text(record, 1).find("overflows"), std::string::npos) << failure_text(record, 1);
  pseudo_inverse({4}, cutoff, record);
  EXPECT_EQ(failure_text(record, 1), "");
}

TEST(KernelsSolve, WeightsFromNorms) {
  const auto backend = kernels::reference::make_backend();
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Numbers lengths{4, 0, 0.25, inf}, magnitudes{4, 0, 0.25, inf};
  backend->weights_from_norms(kernels::NormKind::two, 4, lengths.data());
  EXPECT_EQ(lengths, (Numbers{2, 0, 0.5, inf}));
  backend->weights_from_norms(kernels::NormKind::max, 4, magnitudes.data());
  EXPECT_EQ(magnitudes, (Numbers{4, 0, 1, inf}));
  for (const auto kind : {kernels::NormKind::two, kernels::NormKind::max}) {
    Numbers bad{nan};
    backend->weights_from_norms(kind, 1, bad.data());
    EXPECT_TRUE(std::isnan(bad[0]));
  }
}

TEST(KernelsSolve, InvertsRandomGrams) {
  const auto backend = kernels::cpu::make_backend(2);
  for (const i64 rank : test_ranks) {
    const auto a = TestMatrix<double>::random(4 * rank, rank, 0, 61);
    Numbers v(static_cast<std::size_t>(rank * rank)), p(v.size());
    backend->gram(a.view(), v.data());
    SolveRecord record;
    backend->pseudo_inverse(v.data(), rank, cutoff, p.data(), &record);
    EXPECT_EQ(record.used_eigen, 0);
    for (i64 i = 0; i < rank; ++i)
      for (i64 j = 0; j < rank; ++j) {
        double sum = 0;
        for (i64 k = 0; k < rank; ++k)
          sum += v[static_cast<std::size_t>(i * rank + k)] * p[static_cast<std::size_t>(k * rank + j)];
        // The condition of a 4R x R random Gram is below 100: rank * 100 * 2^-53, with two digits to spare.
        ASSERT_NEAR(sum, i == j ? 1 : 0, 1e4 * static_cast<double>(rank) * 0x1p-53) << rank;
      }
  }
}

} // namespace
} // namespace td::test
