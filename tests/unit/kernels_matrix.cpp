// The CPU backend's matrix kernels against the reference, over types, ranks and threads.
#include "kernels/philox.hpp"
#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

template <class T> class KernelsMatrix : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(KernelsMatrix, Types);

// All sums are f64 over `rows` terms of at most 1: |error| <= rows * rows * 2^-53 on either side.
double allowed(i64 rows) { return 2.0 * static_cast<double>(rows * rows) * 0x1p-53; }

void expect_near(const std::vector<double> &got, const std::vector<double> &expected, double tolerance) {
  for (std::size_t k = 0; k < got.size(); ++k)
    ASSERT_NEAR(got[k], expected[k], tolerance) << "at " << k;
}

template <class F> void for_each_backend(const std::vector<double> &expected, double tolerance, F &&compute) {
  std::vector<double> first;
  for (const int threads : {1, 2, 3}) {
    std::vector<double> got(expected.size(), std::nan(""));
    compute(*cpu_backend(threads), got.data());
    expect_near(got, expected, tolerance);
    if (first.empty())
      first = got;
    EXPECT_EQ(got, first) << threads << " threads change the bits";
  }
}

TYPED_TEST(KernelsMatrix, SumsOverRows) {
  const auto reference = kernels::reference::make_backend();
  for (const i64 rank : test_ranks)
    for (const i64 rows : {i64{1}, i64{27}, i64{3001}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank);
      const auto a = TestMatrix<TypeParam>::random(rows, rank, rank % 3, 41);
      const auto b = TestMatrix<TypeParam>::random(rows, rank, 2, 42);
      const auto check = [&](i64 size, auto &&compute) {
        std::vector<double> expected(static_cast<std::size_t>(size));
        compute(*reference, expected.data());
        for_each_backend(expected, allowed(rows), compute);
      };
      using kernels::Backend;
      check(rank * rank, [&](Backend &k, double *out) { k.gram(a.view(), out); });
      check(rank, [&](Backend &k, double *out) { k.column_norms(a.view(), kernels::NormKind::two, out); });
      check(rank, [&](Backend &k, double *out) { k.column_norms(a.view(), kernels::NormKind::max, out); });
      check(rank, [&](Backend &k, double *out) { k.column_dots(a.view(), b.view(), out); });
    }
}

// The kernels are held against the definition, with rows that are listed and rows as they are; from and to have
// padding.
TYPED_TEST(KernelsMatrix, TransposedRows) {
  for (const auto &backend : {kernels::reference::make_backend(), cpu_backend(1), cpu_backend(3)}) {
    check_transposed<TypeParam>(*backend);
    check_rows_of_lists<TypeParam>(*backend);
  }
}

TYPED_TEST(KernelsMatrix, FirstNotFinite) {
  for (const auto &backend : {kernels::reference::make_backend(), cpu_backend(1), cpu_backend(3)})
    check_first_not_finite<TypeParam>(*backend);
}

TYPED_TEST(KernelsMatrix, MultiplyAndDivide) {
  for (const i64 rank : test_ranks)
    for (const i64 rows : {i64{0}, i64{1}, i64{1025}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank);
      const auto m = TestMatrix<TypeParam>::random(rows, rank, 3, 51);
      const auto p = TestMatrix<double>::random(rank, rank, 0, 52);
      auto d = TestMatrix<double>::random(1, rank, 0, 53);
      d.at(0, rank / 2) = 0;
      auto expected = m;
      const auto reference = kernels::reference::make_backend();
      reference->multiply(m.view(), &p.at(0, 0), expected.view());
      auto divided = m;
      reference->divide_columns(divided.view(), &d.at(0, 0));
      for (const int threads : {1, 3}) {
        const auto backend = cpu_backend(threads);
        TestMatrix<TypeParam> out(rows, rank, 1);
        backend->multiply(m.view(), &p.at(0, 0), out.view());
        auto in_place = m;
        backend->multiply(in_place.view(), &p.at(0, 0), in_place.view());
        auto quotient = m, in_one = m;
        backend->divide_columns(quotient.view(), &d.at(0, 0));
        std::vector<double> gram(static_cast<std::size_t>(rank * rank)), gram_in_one(gram.size());
        backend->gram(quotient.view(), gram.data());
        backend->divide_and_gram(in_one.view(), &d.at(0, 0), gram_in_one.data());
        EXPECT_TRUE(in_one.same_bits(quotient));
        EXPECT_EQ(gram_in_one, gram);
        for (i64 i = 0; i < rows; ++i)
          for (i64 r = 0; r < rank; ++r) {
            // rank terms of at most 1 in f64, rounded once to T
            const double tolerance =
                static_cast<double>(rank * rank) * (0x1p-52 + epsilon_of(value_type_of<TypeParam>));
            ASSERT_NEAR(out.at(i, r), expected.at(i, r), tolerance);
            ASSERT_EQ(in_place.at(i, r), out.at(i, r));
            ASSERT_EQ(quotient.at(i, r), divided.at(i, r));
          }
        EXPECT_TRUE(out.padding_untouched());
        EXPECT_TRUE(in_place.padding_untouched());
        EXPECT_TRUE(quotient.padding_untouched());
      }
    }
}

TYPED_TEST(KernelsMatrix, RandomIsTheSameEverywhere) {
  TestMatrix<TypeParam> whole(301, 7, 2);
  kernels::reference::make_backend()->random_uniform(whole.view(), 5, 1, 0);
  for (const int threads : {1, 3}) {
    TestMatrix<TypeParam> parts(301, 7, 2);
    const auto backend = cpu_backend(threads);
    backend->random_uniform(parts.view().slice(0, 100), 5, 1, 0);
    backend->random_uniform(parts.view().slice(100, 301), 5, 1, 100);
    EXPECT_TRUE(parts.same_bits(whole));
  }
  double mean = 0;
  for (i64 i = 0; i < 301; ++i)
    for (i64 r = 0; r < 7; ++r) {
      ASSERT_GE(whole.at(i, r), 0);
      ASSERT_LT(whole.at(i, r), 1);
      mean += static_cast<double>(whole.at(i, r)) / (301 * 7);
    }
  EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(1.0 / 12 / (301 * 7))); // five standard deviations; the numbers are fixed
}

// Known answers that the authors publish with Random123 (kat_vectors, philox4x32 10).
TEST(KernelsPhilox, KnownAnswers) {
  using kernels::philox4x32_10;
  using Block = kernels::PhiloxBlock;
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32_10({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(KernelsPhilox, UniformUsesLeadingBits) {
  // Row, column, mode and seed 0: the block of zeros above; 0x6627e8d5e169c58d / 2^64.
  EXPECT_EQ(kernels::uniform<double>(0, 0, 0, 0), static_cast<double>(0x6627e8d5e169c58dULL >> 11) * 0x1p-53);
  EXPECT_EQ(kernels::uniform<float>(0, 0, 0, 0), static_cast<float>(0x6627e8d5e169c58dULL >> 40) * 0x1p-24F);
  EXPECT_EQ(kernels::uniform<double>(0, 0, 0, 1), static_cast<double>(0xbc57ac4c9b00dbd8ULL >> 11) * 0x1p-53);
}

} // namespace
} // namespace td::test
