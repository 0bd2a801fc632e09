// Starts: what nvecs gives, by short and by long modes.
#include "unit/solver_make.hpp"

#include "kernels/cpu/backend.hpp"
#include "plan/nvecs.hpp"
#include "solvers/eigenvectors.hpp"
#include "solvers/replica.hpp"
#include "solvers/start.hpp"

namespace {

using namespace td;
using namespace td::test;

/// |X_(m) X_(m)^T v - theta v| with theta = v^T X_(m) X_(m)^T v, by the definition over a dense array.
struct EigenCheck {
  double theta = 0;
  double residual = 0;
};
EigenCheck check_eigenvector(const std::vector<i64> &dims, const std::vector<double> &x, int mode,
                             const std::vector<double> &v) {
  i64 left = 1;
  for (int m = 0; m < mode; ++m)
    left *= dims[static_cast<std::size_t>(m)];
  const i64 n = dims[static_cast<std::size_t>(mode)];
  const i64 total = static_cast<i64>(x.size());
  std::vector<double> image(v.size(), 0.0);
  for (i64 outer = 0; outer < total; outer += left * n) {
    for (i64 inner = 0; inner < left; ++inner) {
      double dot = 0;
      for (i64 i = 0; i < n; ++i)
        dot += x[static_cast<std::size_t>(outer + i * left + inner)] * v[static_cast<std::size_t>(i)];
      for (i64 i = 0; i < n; ++i)
        image[static_cast<std::size_t>(i)] += dot * x[static_cast<std::size_t>(outer + i * left + inner)];
    }
  }
  EigenCheck check;
  for (std::size_t i = 0; i < v.size(); ++i)
    check.theta += image[i] * v[i];
  for (std::size_t i = 0; i < v.size(); ++i)
    check.residual += (image[i] - check.theta * v[i]) * (image[i] - check.theta * v[i]);
  check.residual = std::sqrt(check.residual);
  return check;
}

void expect_eigenvectors(const std::vector<i64> &dims, const std::vector<double> &values, const Ktensor &start,
                         int mode, double tolerance) {
  double first = 0, before = 0;
  for (i64 r = 0; r < start.rank(); ++r) {
    const auto v = column(start, mode, r);
    const EigenCheck check = check_eigenvector(dims, values, mode, v);
    if (r == 0)
      first = before = check.theta;
    EXPECT_NEAR(length(v), 1, 1e-12);
    EXPECT_LE(check.residual, tolerance * first) << "mode " << mode << ", column " << r;
    EXPECT_LE(check.theta, before * (1 + 1e-6)) << "not in descending order";
    before = check.theta;
    double largest = 0;
    for (double e : v)
      largest = std::abs(e) > std::abs(largest) ? e : largest;
    EXPECT_GT(largest, 0);
  }
}

TEST(Start, NvecsAreEigenvectors) {
  const std::vector<i64> dims{7, 70, 5}; // 70: more than one block of an identity
  const auto values = full_array(random_ktensor(dims, 6, 61));
  for (const auto &backend : {kernels::reference::make_backend(), kernels::cpu::make_backend(2)}) {
    for (const TensorPointer &x : {dense_tensor(dims, values), sparse_tensor(dims, values, "blco")}) {
      const Ktensor start = solvers::nvecs_start(*backend, *x, 4, 0);
      for (int m = 0; m < 3; ++m)
        expect_eigenvectors(dims, values, start, m, 1e-12);
    }
  }
}

TEST(Start, LongModesConvergeToEigenvectors) {
  const std::vector<i64> dims{4, 700, 6};
  ASSERT_GT(dims[1], plan::longest_whole_mode);
  const auto values = full_array(random_ktensor(dims, 20, 62));
  const auto backend = kernels::cpu::make_backend(2);
  for (const TensorPointer &x : {dense_tensor(dims, values), sparse_tensor(dims, values, "sorted")}) {
    const Ktensor start = solvers::nvecs_start(*backend, *x, 3, 0);
    expect_eigenvectors(dims, values, start, 1, 2e-6);
  }
}

TEST(Start, LongModesOfLowRankFillUpAtRandom) {
  // Two columns of rank, five wanted: the rest are numbers of the random start.
  const std::vector<i64> dims{4, 700, 6};
  const auto values = full_array(random_ktensor(dims, 2, 63));
  const TensorPointer x = dense_tensor(dims, values);
  const auto backend = kernels::cpu::make_backend(1);
  const Ktensor start = solvers::nvecs_start(*backend, *x, 5, 9);
  const Ktensor random = solvers::random_start(*backend, dims, 5, ValueType::f64, 9);
  EXPECT_LE(check_eigenvector(dims, values, 1, column(start, 1, 1)).residual, 1e-9);
  EXPECT_EQ(column(start, 1, 4), column(random, 1, 4));
  EXPECT_EQ(column(start, 0, 4), column(random, 0, 4)); // beyond dims[0] = 4
}

TEST(Start, RandomIsTheSameEverywhere) {
  const std::vector<i64> dims{5, 3, 2};
  const Ktensor a = solvers::random_start(*kernels::reference::make_backend(), dims, 4, ValueType::f64, 7);
  const Ktensor b = solvers::random_start(*kernels::cpu::make_backend(3), dims, 4, ValueType::f64, 7);
  const Ktensor c = solvers::random_start(*kernels::cpu::make_backend(1), dims, 4, ValueType::f64, 8);
  EXPECT_EQ(column(a, 1, 2), column(b, 1, 2));
  EXPECT_NE(column(a, 1, 2), column(c, 1, 2));
  EXPECT_NE(column(a, 1, 0), column(a, 2, 0));
}

// Copies that several threads share: of whole factors, and of every third row.
TEST(Replica, HoldsWhatItIsGivenAndGivesItBack) {
  const auto backend = kernels::cpu::make_backend(3);
  constexpr i64 rows = 400000, rank = 5; // 16 MB
  const Ktensor given = random_ktensor({rows, 4, 3}, rank, 11);
  std::vector<i64> some(rows / 3);
  for (std::size_t k = 0; k < some.size(); ++k)
    some[k] = static_cast<i64>(3 * k + 1);
  for (const std::span<const i64> which : {std::span<const i64>(), std::span<const i64>(some)}) {
    const i64 held = which.empty() ? rows : std::ssize(which);
    const solvers::DeviceMatrix there(*backend, held, rank, ValueType::f64, "rows");
    solvers::upload_rows(*backend, given.factor(0), which, there.view());
    Ktensor back(given.dims(), rank, ValueType::f64);
    solvers::download_rows(*backend, there.view(), back.factor(0), which);
    for (i64 i = 0; i < rows; ++i)
      for (i64 r = 0; r < rank; ++r)
        ASSERT_EQ(back.factor(0).row<double>(i)[r],
                  which.empty() || (i % 3 == 1 && i / 3 < held) ? given.factor(0).row<double>(i)[r] : 0)
            << "row " << i << ", column " << r;
  }
}

} // namespace
