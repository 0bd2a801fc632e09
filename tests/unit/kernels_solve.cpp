// The normal equations: well, badly and not conditioned.
#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

using kernels::failure_text;
using kernels::SolveFailure;
using kernels::SolveRecord;
using Numbers = std::vector<double>;

i64 rank_of(const Numbers &v) { return static_cast<i64>(std::lround(std::sqrt(static_cast<double>(v.size())))); }

/// f^T f of the factor.
Numbers pseudo_inverse(const Numbers &v, double cutoff, SolveRecord &record) {
  const i64 rank = rank_of(v);
  Numbers f(v.size(), std::nan("")), p(v.size(), 0.0);
  kernels::reference::make_backend()->factor_normal(v.data(), rank, cutoff, f.data(), &record);
  for (i64 i = 0; i < rank; ++i)
    for (i64 j = 0; j < rank; ++j)
      for (i64 k = 0; k < rank; ++k)
        p[static_cast<std::size_t>(i * rank + j)] +=
            f[static_cast<std::size_t>(k * rank + i)] * f[static_cast<std::size_t>(k * rank + j)];
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
  // Scaled to {1, 1, 1, 3}: 1-norm 4, and of the inverse {1.5, -0.5, -0.5, 0.5} 2.
  EXPECT_NEAR(record.condition, 8, 1e-14);
}

TEST(KernelsSolve, TheFactorIsTheInverseOfTheLowerTriangle) { // {4, 2, 2, 5} = L L^T with L = {2, 0, 1, 2}
  SolveRecord record;
  Numbers f(4);
  const Numbers v{4, 2, 2, 5};
  kernels::reference::make_backend()->factor_normal(v.data(), 2, cutoff, f.data(), &record);
  EXPECT_EQ(f, (Numbers{0.5, 0, -0.25, 0.5}));
}

TEST(KernelsSolve, SingularGivesMoorePenrose) { // ones(2, 2) = 2 q q^T, so its pseudo-inverse is q q^T / 2
  SolveRecord record;
  expect_near(pseudo_inverse({1, 1, 1, 1}, cutoff, record), {0.25, 0.25, 0.25, 0.25}, 1e-15);
  EXPECT_EQ(record.effective_rank, 1);
  EXPECT_EQ(record.used_eigen, 1);
  EXPECT_EQ(record.condition, kernels::most_condition);
}

TEST(KernelsSolve, ZeroColumnAndZeroMatrix) {
  SolveRecord record;
  expect_near(pseudo_inverse({2, 0, 0, 0}, cutoff, record), {0.5, 0, 0, 0}, 1e-15);
  EXPECT_EQ(record.effective_rank, 1);
  EXPECT_EQ(pseudo_inverse({0, 0, 0, 0}, cutoff, record), (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(record.effective_rank, 0);
  EXPECT_EQ(record.condition, kernels::most_condition);
}

TEST(KernelsSolve, ColumnsThatAreAlmostAlikeLoseAnEigenvalue) {
  SolveRecord record;
  expect_near(pseudo_inverse({1, 1, 1, 1 + 1e-14}, cutoff, record), {0.25, 0.25, 0.25, 0.25}, 1e-14);
  EXPECT_EQ(record.effective_rank, 1);
  EXPECT_EQ(record.used_eigen, 1);
  EXPECT_NEAR(record.condition / 4e14, 1, 0.05); // eigenvalues 2 and 5e-15, known to 2^-52
}

TEST(KernelsSolve, AShortColumnIsNoReasonToDropIt) {
  SolveRecord record;
  expect_near(pseudo_inverse({1, 0, 0, 0x1p-100}, cutoff, record), {1, 0, 0, 0x1p100}, 0);
  EXPECT_EQ(record.effective_rank, 2);
  EXPECT_EQ(record.condition, 1);
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

TEST(KernelsSolve, ScalesOfColumns) {
  const auto backend = kernels::reference::make_backend();
  const Numbers first{2, 0.5, 1, 4}, second{4, 1, 1, 0.5}, own{2, 4, 1, 1}, weights{6, 0, 0.3, 0x1p-1040};
  const double *const others[] = {first.data(), second.data()};
  Numbers right(4), before(4), solved(4);
  backend->solve_scales({{}, others, own.data(), weights.data(), 4}, {right.data(), before.data(), solved.data()});
  EXPECT_EQ(right, (Numbers{0.125, 2, 1, 0.5}));
  EXPECT_EQ(before, (Numbers{3, 0, 0.3, 0x1p-1040}));
  EXPECT_EQ(solved, (Numbers{0.25, 1, 4, 0x1p1000})); // 6 / 4 and 0.3 * 4 are in [1, 2)
  backend->solve_scales({{}, others, own.data(), nullptr, 4}, {right.data(), before.data(), solved.data()});
  EXPECT_EQ(before, Numbers(4, 0.0));
  EXPECT_EQ(solved, Numbers(4, 1.0));
}

// Columns that were stored as a quarter: the model's have largest magnitudes 6, 0.4 and 0, of which only the first is
// above 1.
TEST(KernelsSolve, ColumnsAreNormalizedByTheirGramMatrix) {
  const auto backend = kernels::reference::make_backend();
  const Numbers solved(3, 0.25), largest{1.5, 0.1, 0};
  Numbers weights(3), scales(3), gram{9, 3, 0, 3, 2, 0, 0, 0, 0};
  backend->finish_columns(3, solved.data(), largest.data(), weights.data(), scales.data(), gram.data());
  EXPECT_EQ(weights, (Numbers{6, 1, 0}));
  EXPECT_EQ(scales, (Numbers{1.5, 0.25, 1}));
  EXPECT_EQ(gram, (Numbers{4, 8, 0, 8, 32, 0, 0, 0, 0}));
  const Numbers bad{std::nan("")};
  Numbers one(1), weight(1), scale(1);
  backend->finish_columns(1, solved.data(), bad.data(), weight.data(), scale.data(), one.data());
  EXPECT_TRUE(std::isnan(weight[0]));
}

/// a v - m over the product of magnitudes, the largest entry.
long double residual_of(const Numbers &v, const TestMatrix<double> &m, const TestMatrix<double> &a, i64 rank) {
  long double worst = 0;
  for (i64 i = 0; i < m.view().rows; ++i)
    for (i64 j = 0; j < rank; ++j) {
      long double sum = -static_cast<long double>(m.at(i, j));
      for (i64 k = 0; k < rank; ++k)
        sum += static_cast<long double>(a.at(i, k)) * v[static_cast<std::size_t>(k * rank + j)];
      worst = std::max(worst, std::abs(sum));
    }
  return worst;
}

// What is lost of a residual by two triangles is eps sqrt(condition), by an inverse it was eps condition. Random Gram
// matrices with columns moved towards the first one by all but `apart` have a condition of about apart^-2.
TEST(KernelsSolve, ResidualsLoseTheRootOfTheCondition) {
  for (const auto &backend : {kernels::reference::make_backend(), cpu_backend(2)})
    for (const i64 rank : test_ranks)
      for (const double apart : {1.0, 1e-3, 1e-5}) {
        auto a = TestMatrix<double>::random(4 * rank, rank, 0, 61);
        for (i64 i = 0; i < 4 * rank; ++i)
          for (i64 r = 1; r < rank; ++r)
            a.at(i, r) = a.at(i, 0) + apart * a.at(i, r);
        Numbers v(static_cast<std::size_t>(rank * rank)), f(v.size());
        backend->gram(a.view(), v.data());
        SolveRecord record;
        backend->factor_normal(v.data(), rank, 1e-15, f.data(), &record);
        ASSERT_EQ(record.used_eigen, 0) << rank << " " << apart;
        // m = x v for a known x of magnitude 1, so that |m| is of |v|'s magnitude.
        const auto x = TestMatrix<double>::random(17, rank, 0, 62);
        auto m = TestMatrix<double>::random(17, rank, 3, 63), solved = TestMatrix<double>::random(17, rank, 5, 64);
        backend->multiply(x.view(), v.data(), m.view());
        backend->solve_normal({rank, v.data(), f.data(), &record}, m.view(), {}, solved.view());
        const double size = static_cast<double>(rank) * 0x1p-53 * *std::max_element(v.begin(), v.end());
        EXPECT_LE(residual_of(v, m, solved, rank), 8 * size * std::sqrt(static_cast<double>(rank) * record.condition))
            << rank << " " << apart << " condition " << record.condition;
      }
}

// v = ones(2, 2) says nothing of the difference of two columns: it stays what it was, and without weights is zero.
TEST(KernelsSolve, WhatIsNotKnownStays) {
  for (const auto &backend : {kernels::reference::make_backend(), cpu_backend(2)}) {
    const Numbers v{1, 1, 1, 1}, weights{2, 1};
    Numbers f(4), m{6, 6}, a{1, 4};
    SolveRecord record;
    backend->factor_normal(v.data(), 2, cutoff, f.data(), &record);
    const kernels::NormalEquations equations{2, v.data(), f.data(), &record};
    const ConstMatrix left{m.data(), ValueType::f64, 1, 2, 2};
    const Matrix right{a.data(), ValueType::f64, 1, 2, 2};
    backend->solve_normal(equations, left, {nullptr, weights.data()}, right); // was (2, 4): sum 6, as m says
    expect_near(a, {2, 4}, 1e-14);
    m = {8, 8};
    a = {1, 4};
    backend->solve_normal(equations, left, {nullptr, weights.data()}, right);
    expect_near(a, {3, 5}, 1e-14);
    backend->solve_normal(equations, left, {}, right);
    expect_near(a, {4, 4}, 1e-14);
    // The same as the second of these by scales: 16 times 0.5 is 8, and (3, 5) comes out divided by 2 and 4.
    const Numbers halves{0.5, 0.5}, shorter{0.5, 0.25};
    m = {16, 16};
    a = {1, 4};
    backend->solve_normal(equations, left, {halves.data(), weights.data(), shorter.data()}, right);
    expect_near(a, {1.5, 1.25}, 1e-14);
  }
}

// In one pass the same bits as one after the other, for any number of threads; inner products but for their order.
template <class T> void expect_sums_in_one_pass(i64 rows, i64 rank, bool singular) {
  SCOPED_TRACE(testing::Message() << rows << " rows, rank " << rank << (singular ? ", singular" : ""));
  const auto reference = kernels::reference::make_backend();
  const auto columns = TestMatrix<double>::random(singular ? std::max<i64>(rank / 2, 1) : 4 * rank, rank, 0, 65);
  Numbers v(static_cast<std::size_t>(rank * rank)), f(v.size());
  reference->gram(columns.view(), v.data());
  SolveRecord record;
  reference->factor_normal(v.data(), rank, cutoff, f.data(), &record);
  const kernels::NormalEquations equations{rank, v.data(), f.data(), &record};
  const auto scales = TestMatrix<double>::random(2, rank, 0, 66);
  const Numbers powers(static_cast<std::size_t>(rank), 0.25);
  const auto m = TestMatrix<T>::random(rows, rank, 3, 67);
  const auto start = TestMatrix<T>::random(rows, rank, 1, 68);
  const auto n = static_cast<std::size_t>(rank);
  auto literal = start;
  reference->solve_normal(equations, m.view(), {&scales.at(0, 0), &scales.at(1, 0), powers.data()}, literal.view());
  for (const auto &backend : {reference, cpu_backend(1), cpu_backend(3)}) {
    auto apart = start, at_once = start;
    Numbers gram(v.size()), gram_apart(v.size()), largest(n), largest_apart(n), inner(n), inner_apart(n);
    const kernels::SolveScales by{&scales.at(0, 0), &scales.at(1, 0), powers.data()};
    backend->solve_normal(equations, m.view(), by, apart.view());
    backend->gram(apart.view(), gram_apart.data());
    backend->column_norms(apart.view(), kernels::NormKind::max, largest_apart.data());
    backend->column_dots(m.view(), apart.view(), inner_apart.data());
    backend->solve_and_sum(equations, m.view(), by, at_once.view(), {gram.data(), largest.data(), inner.data()});
    EXPECT_TRUE(at_once.same_bits(apart));
    EXPECT_EQ(gram, gram_apart);
    EXPECT_EQ(largest, largest_apart);
    for (std::size_t r = 0; r < n; ++r) // rows terms of at most largest, twice
      EXPECT_NEAR(inner[r], inner_apart[r], 2e-16 * static_cast<double>(rows * rows) * (1 + largest[r]));
    backend->solve_and_sum(equations, m.view(), by, at_once.view(), {gram.data(), largest.data()}); // without inner
    // Eigenvalues above 0.01 and entries near 1, as in KernelsDevice.
    const double tolerance = 1e4 * static_cast<double>(rank) * epsilon_of(value_type_of<T>);
    for (i64 i = 0; i < rows; ++i)
      for (i64 r = 0; r < rank; ++r)
        ASSERT_NEAR(apart.at(i, r), literal.at(i, r), tolerance) << i << " " << r;
    EXPECT_TRUE(at_once.padding_untouched());
  }
}

TEST(KernelsSolve, SumsInOnePass) {
  for (const i64 rank : test_ranks)
    for (const i64 rows : {i64{0}, i64{1}, i64{1300}})
      for (const bool singular : {false, true}) {
        expect_sums_in_one_pass<double>(rows, rank, singular);
        expect_sums_in_one_pass<float>(rows, rank, singular);
      }
}

} // namespace
} // namespace td::test
