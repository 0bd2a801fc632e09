// The reference kernels on numbers that can be checked by hand.
#include <numeric>

#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

// Tensor 1 .. 720 of 2 x 3 x 4 x 5 x 6 and factors of ones: row i of the result is the sum of slice i (pyttb's test).
TEST(KernelsReference, MttkrpOfOnesSumsSlices) {
  const std::vector<i64> dims{2, 3, 4, 5, 6};
  std::vector<double> values(720);
  std::iota(values.begin(), values.end(), 1.0);
  const kernels::DenseView x{dims, ValueType::f64, values.data()};
  const std::vector<std::vector<double>> expected{{129600, 129960},
                                                  {86040, 86520, 87000},
                                                  {63270, 64350, 65430, 66510},
                                                  {45000, 48456, 51912, 55368, 58824},
                                                  {7260, 21660, 36060, 50460, 64860, 79260}};
  std::vector<TestMatrix<double>> ones;
  for (const i64 d : dims) {
    ones.emplace_back(d, 2, 0);
    ones.back().fill([](i64, i64) { return 1.0; });
  }
  const auto factors = views(ones);
  for (const auto &backend : {kernels::reference::make_backend(), kernels::cpu::make_backend(2)})
    for (int mode = 0; mode < 5; ++mode) {
      TestMatrix<double> out(dims[static_cast<std::size_t>(mode)], 2, 1);
      backend->mttkrp(x, {mode, factors, out.view(), {0, out.rows()}, {0, 720}});
      for (i64 i = 0; i < out.rows(); ++i)
        for (i64 r = 0; r < 2; ++r)
          EXPECT_EQ(out.at(i, r), expected[static_cast<std::size_t>(mode)][static_cast<std::size_t>(i)])
              << backend->describe() << ", mode " << mode << ", row " << i;
    }
}

struct SmallMatrix {
  TestMatrix<double> a{3, 2, 1};
  SmallMatrix() {
    a.fill([](i64 i, i64 r) { return std::vector<double>{1, 2, 3, -4, 5, 6}[static_cast<std::size_t>(2 * i + r)]; });
  }
};

TEST(KernelsReference, MatrixKernels) { // A = [1 2; 3 -4; 5 6]
  SmallMatrix m;
  const auto backend = kernels::reference::make_backend();
  std::vector<double> g(4), two(2), largest(2), dots(2);
  backend->gram(m.a.view(), g.data());
  EXPECT_EQ(g, (std::vector<double>{35, 20, 20, 56}));
  backend->column_norms(m.a.view(), kernels::NormKind::two, two.data());
  EXPECT_EQ(two, (std::vector<double>{35, 56}));
  backend->column_norms(m.a.view(), kernels::NormKind::max, largest.data());
  EXPECT_EQ(largest, (std::vector<double>{5, 6}));
  backend->column_dots(m.a.view(), m.a.view(), dots.data());
  EXPECT_EQ(dots, two);

  const std::vector<double> p{0, 1, 1, 1}; // [r1 r2] -> [r2, r1 + r2]
  backend->multiply(m.a.view(), p.data(), m.a.view());
  EXPECT_EQ(m.a.at(0, 0), 2);
  EXPECT_EQ(m.a.at(0, 1), 3);
  EXPECT_EQ(m.a.at(1, 0), -4);
  EXPECT_EQ(m.a.at(1, 1), -1);
  const std::vector<double> d{2, 0};
  backend->divide_columns(m.a.view(), d.data());
  EXPECT_EQ(m.a.at(2, 0), 3);
  EXPECT_EQ(m.a.at(2, 1), 11);
  EXPECT_TRUE(m.a.padding_untouched());
}

TEST(KernelsReference, HadamardAddsTheRidgeToTheDiagonal) {
  const std::vector<double> a{1, 2, 2, 5}, b{3, -1, -1, 2};
  const std::vector<const double *> grams{a.data(), b.data()};
  std::vector<double> v(4);
  kernels::reference::make_backend()->hadamard(grams, 2, 0.5, v.data());
  EXPECT_EQ(v, (std::vector<double>{3.5, -2, -2, 10.5}));
}

TEST(KernelsReference, CompareAndUnfoldingNormal) { // X = [1 3; 2 4], model 2 * a b^T with a = (1, 1), b = (1, 2)
  const std::vector<i64> dims{2, 2};
  const std::vector<double> values{1, 2, 3, 4};
  const kernels::DenseView x{dims, ValueType::f64, values.data()};
  std::vector<TestMatrix<double>> factors;
  for (int m = 0; m < 2; ++m) {
    factors.emplace_back(2, 1, 0);
    factors.back().fill([&](i64 i, i64) { return m == 0 ? 1.0 : static_cast<double>(i + 1); });
  }
  const double weight = 2;
  std::vector<double> out(3);
  const auto backend = kernels::reference::make_backend();
  backend->compare(x, &weight, views(factors), {0, 4}, out.data()); // model [2 4; 2 4]
  EXPECT_EQ(out, (std::vector<double>{2, 40, 34}));

  TestMatrix<double> y(2, 1, 0); // X X^T = [10 14; 14 20], times (1, 1)
  backend->unfolding_normal(x, 0, factors[0].view(), y.view(), false);
  EXPECT_EQ(y.at(0, 0), 24);
  EXPECT_EQ(y.at(1, 0), 34);
}

} // namespace
} // namespace td::test
