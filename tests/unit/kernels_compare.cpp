// The CPU backend's walks over entries, other than MTTKRP, against the reference.
#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

template <class T> class KernelsCompare : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(KernelsCompare, Types);

// Of a dense tensor with a mode 0 of 601 rows there are three tiles of columns, and ranges within one fiber.
TYPED_TEST(KernelsCompare, ResidualSums) {
  const auto reference = kernels::reference::make_backend();
  for (const auto &dims : std::vector<std::vector<i64>>{{23, 9, 14}, {601, 3, 2}}) {
    const Stored<TypeParam> x(random_entries<i64, TypeParam>(dims, 1500, 0, 7), true);
    for (const i64 rank : test_ranks) {
      const auto factors = random_factors<TypeParam>(x.dims, rank, 1, 71);
      const auto f = views(factors);
      const auto weights = TestMatrix<double>::random(1, rank, 0, 72);
      for (int mode = 0; mode < 3; ++mode)
        for (const auto &[name, view] : x.views(mode)) {
          const i64 entries = kernels::entries_of(view);
          for (const Range range : {Range{0, entries}, Range{entries / 4, entries / 4 * 3},
                                    Range{entries / 2 - 90, entries / 2 - 10}, Range{5, 5}}) {
            double expected[3];
            reference->compare(view, &weights.at(0, 0), f, range, expected);
            for (const int threads : {1, 2, 3}) {
              double got[3];
              cpu_backend(threads)->compare(view, &weights.at(0, 0), f, range, got);
              // Values are below 1e3 and |model| <= rank, all in f64: each of n terms of at most (1e3 + rank)^2 has
              // about rank roundings, and the sum n more.
              const double n = static_cast<double>(range.size());
              const double r = static_cast<double>(rank);
              for (int k = 0; k < 3; ++k)
                ASSERT_NEAR(got[k], expected[k], n * (n + r) * (1e3 + r) * (1e3 + r) * 0x1p-53)
                    << name << ", mode 0 of " << dims[0] << ", rank " << rank << ", threads " << threads << ", sum "
                    << k;
            }
          }
        }
    }
  }
}

TYPED_TEST(KernelsCompare, UnfoldingNormal) {
  for (const auto &dims : std::vector<std::vector<i64>>{{23, 9, 14}, {7, 300}, {3, 4, 5, 6}}) {
    const Stored<TypeParam> x(random_entries<i64, TypeParam>(dims, 700, 0, 7), true);
    const auto reference = kernels::reference::make_backend();
    for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode) {
      const i64 n = dims[static_cast<std::size_t>(mode)];
      const auto fibers = formats::build_fibers(x.coo.view(), mode, 1);
      const std::vector<std::pair<const char *, kernels::TensorView>> forms{{"fibers", fibers.view()},
                                                                            {"dense", x.dense.view()}};
      for (const i64 columns : {i64{1}, i64{5}, i64{12}}) {
        const auto omega = TestMatrix<double>::random(n, columns, 2, 81);
        for (const auto &[name, view] : forms) {
          TestMatrix<double> expected(n, columns, 0);
          reference->unfolding_normal(x.dense.view(), mode, omega.view(), expected.view(), false);
          for (const int threads : {0, 1, 2, 3}) { // 0: the reference, on this form
            TestMatrix<double> y(n, columns, 1);
            const auto backend = threads == 0 ? reference : cpu_backend(threads);
            backend->unfolding_normal(view, mode, omega.view(), y.view(), false);
            EXPECT_TRUE(y.padding_untouched());
            for (i64 i = 0; i < n; ++i)
              for (i64 s = 0; s < columns; ++s) // 700 products of two values below 1e3, in f64
                ASSERT_NEAR(y.at(i, s), expected.at(i, s), 1e6 * 700 * 700 * 0x1p-53)
                    << name << ", mode " << mode << ", threads " << threads;
            const auto once = y;
            backend->unfolding_normal(view, mode, omega.view(), y.view(), true);
            for (i64 i = 0; i < n; ++i)
              for (i64 s = 0; s < columns; ++s)
                ASSERT_EQ(y.at(i, s), 2 * once.at(i, s)) << "added to what was there";
          }
        }
      }
    }
  }
}

} // namespace
} // namespace td::test
