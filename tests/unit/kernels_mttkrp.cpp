// MTTKRP of the CPU backend against the reference: every format, mode, type, rank, thread count; and its bits.
#include <optional>

#include "core/runs.hpp"
#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

using kernels::Conflicts;
using kernels::MttkrpArgs;

template <class T>
TestMatrix<T> mttkrp(kernels::Backend &backend, const kernels::TensorView &x, int mode,
                     const std::vector<TestMatrix<T>> &factors, i64 pad, Range rows,
                     Conflicts conflicts = Conflicts::automatic, std::optional<Range> entries = {}, bool add = false) {
  const auto f = views(factors);
  const auto &own = factors[static_cast<std::size_t>(mode)];
  TestMatrix<T> out(own.rows(), own.cols(), pad);
  if (add)
    set_before(out, rows);
  const Range all{0, kernels::entries_of(x)};
  backend.mttkrp(x, {mode, f, out.view(), rows, entries.value_or(all), conflicts, add});
  return out;
}

/// A term of a sum has order roundings. Sums of at most 256 terms are in T; they are added up in f64, at most 272 at
/// one level and few after that. So |error| <= (order + 256 + 272 + 16) u sum|terms| with u = eps / 2; the reference
/// has the same with a smaller constant.
template <class T> double allowed(double sum_of_magnitudes, std::size_t order) {
  return (static_cast<double>(order) + 600) * epsilon_of(value_type_of<T>) / 2 * sum_of_magnitudes;
}

template <class T>
void expect_near(const TestMatrix<T> &got, const TestMatrix<T> &expected, const TestMatrix<T> &magnitude, Range rows,
                 std::size_t order) {
  for (i64 i = 0; i < got.rows(); ++i)
    for (i64 r = 0; r < got.cols(); ++r) {
      if (i < rows.begin || i >= rows.end) {
        ASSERT_TRUE(std::isnan(got.at(i, r))) << "row " << i << " is not one of those asked for";
        continue;
      }
      ASSERT_NEAR(got.at(i, r), expected.at(i, r), allowed<T>(static_cast<double>(magnitude.at(i, r)), order))
          << "row " << i << ", column " << r;
    }
  EXPECT_TRUE(got.padding_untouched());
}

/// One format, one mode, every number of threads.
template <class T>
void check_form(const std::string &name, const kernels::TensorView &x, int mode,
                const std::vector<TestMatrix<T>> &factors, const TestMatrix<T> &expected,
                const TestMatrix<T> &magnitude, i64 pad) {
  const i64 n = expected.rows();
  const i64 rank = expected.cols();
  const Range head{0, n / 3}, tail{n / 3, n};
  const std::size_t order = factors.size();
  SCOPED_TRACE(testing::Message() << name << ", " << name_of(value_type_of<T>) << ", mode " << mode << " of " << order
                                  << ", rank " << rank);
  const auto reference = kernels::reference::make_backend();
  expect_near(mttkrp(*reference, x, mode, factors, pad, tail), expected, magnitude, tail, order);

  // What was there before is at most 2, and one more rounding.
  auto with_before = magnitude;
  with_before.fill([&](i64 i, i64 r) { return magnitude.at(i, r) + 2; });
  const auto grown = mttkrp(*reference, x, mode, factors, pad, tail, Conflicts::automatic, {}, true);
  auto by_hand = expected;
  set_before(by_hand, tail);
  by_hand.fill([&](i64 i, i64 r) { return by_hand.at(i, r) + expected.at(i, r); });
  expect_near(grown, by_hand, with_before, tail, order);
  for (const Conflicts policy : {Conflicts::automatic, Conflicts::privatize, Conflicts::atomic, Conflicts::owner})
    expect_near(mttkrp(*cpu_backend(2), x, mode, factors, pad, tail, policy, {}, true), grown, with_before, tail,
                order);

  const i64 nnz = kernels::entries_of(x);
  for (const Range entries : {Range{nnz / 4, nnz / 4 * 3}, Range{nnz / 3, nnz / 3}, Range{0, std::min<i64>(nnz, 1)}}) {
    if (name == "dense")
      continue;
    const auto some = mttkrp(*reference, x, mode, factors, pad, tail, Conflicts::automatic, entries);
    for (const int threads : {1, 3})
      for (const Conflicts conflicts : {Conflicts::automatic, Conflicts::privatize, Conflicts::atomic})
        expect_near(mttkrp(*cpu_backend(threads), x, mode, factors, pad, tail, conflicts, entries), some, magnitude,
                    tail, order);
  }

  const bool cut_by_tensor = name == "sorted" || name == "tiled" || name == "dense";
  for (const Conflicts conflicts : {Conflicts::automatic, Conflicts::owner, Conflicts::privatize, Conflicts::atomic}) {
    if (conflicts != Conflicts::automatic && cut_by_tensor)
      continue;
    const bool owner = conflicts == Conflicts::owner;
    std::optional<TestMatrix<T>> first;
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, policy " << static_cast<int>(conflicts));
      const auto backend = cpu_backend(threads);
      const auto all = mttkrp(*backend, x, mode, factors, pad, {0, n}, conflicts);
      expect_near(all, expected, magnitude, {0, n}, order);
      auto joined = mttkrp(*backend, x, mode, factors, pad, head, conflicts);
      expect_near(joined, expected, magnitude, head, order);
      const auto rest = mttkrp(*backend, x, mode, factors, pad, tail, conflicts);
      expect_near(rest, expected, magnitude, tail, order);
      if (!cut_by_tensor && !owner)
        continue;
      for (i64 i = tail.begin; i < tail.end; ++i)
        for (i64 r = 0; r < rank; ++r)
          joined.at(i, r) = rest.at(i, r);
      EXPECT_TRUE(joined.same_bits(all)) << "the rows asked for change the bits";
      if (!first)
        first = all;
      EXPECT_TRUE(all.same_bits(*first)) << "the number of threads changes the bits";
    }
  }
}

/// Every format of x, every mode: the CPU backend gives what the reference gives for coordinates; sorted copies, dense
/// tensors and what is added in stored order have the same bits for every number of threads and every choice of rows.
template <class T> void check(const Stored<T> &x, i64 rank, i64 pad, unsigned seed) {
  const auto factors = random_factors<T>(x.dims, rank, pad, seed);
  const auto positive = magnitudes(factors);
  const auto reference = kernels::reference::make_backend();
  for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode) {
    const i64 n = x.dims[static_cast<std::size_t>(mode)];
    const auto expected = mttkrp(*reference, x.coo.view(), mode, factors, 0, {0, n});
    const auto magnitude = mttkrp(*reference, x.coo.view(), mode, positive, 0, {0, n});
    for (const auto &form : x.views(mode))
      check_form<T>(form.first, form.second, mode, factors, expected, magnitude, pad);
  }
}

template <class T> class KernelsMttkrp : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(KernelsMttkrp, Types);

TYPED_TEST(KernelsMttkrp, EveryRank) {
  const Stored<TypeParam> x(random_entries<i64, TypeParam>({23, 9, 14}, 1500, 0, 7), true);
  for (const i64 rank : test_ranks)
    check(x, rank, rank % 2 == 0 ? 3 : 0, 11);
}

TYPED_TEST(KernelsMttkrp, EveryOrder) {
  for (const auto &dims : std::vector<std::vector<i64>>{
           {70, 65}, {1, 1}, {130, 3, 2}, {2, 3, 130}, {70, 4, 5, 3}, {5, 1, 6, 3, 4}, {3, 2, 3, 2, 3, 2}})
    check(Stored<TypeParam>(random_entries<i64, TypeParam>(dims, 900, 0, 5), true), 10, 1, 3);
}

// More than one tile on both sides of the mode, and n of one and of many; Khatri-Rao rows of some of the modes before
// or after a short one; blocks that have all columns of thousands of rows, of few streams of memory and of many.
TYPED_TEST(KernelsMttkrp, LongDenseTiles) {
  std::vector<std::vector<i64>> all{{40, 20, 9, 6}, {6, 700, 2}, {4500, 2, 3}, {3, 300, 60}, {70, 5, 3}, {40, 4200}};
  if (!light())
    all.insert(all.end(), {{300, 7, 5}, {100, 1, 30}, {700, 150}, {4200, 40}, {3, 4200, 2}, {9, 4, 20, 7, 5}});
  for (const auto &dims : all)
    check(Stored<TypeParam>(random_entries<i64, TypeParam>(dims, 8000, 0, 6), true), 17, 0, 4);
}

// What lies between the elements is not read, and no bit depends on it.
TYPED_TEST(KernelsMttkrp, DenseWithGapsHasTheBitsOfOneWithout) {
  using T = TypeParam;
  for (const auto &dims :
       std::vector<std::vector<i64>>{{40, 4200}, {4200, 40}, {3, 4200, 2}, {3, 60, 40}, {70, 5, 3}, {9, 4, 20, 7}}) {
    i64 n = 1;
    for (const i64 d : dims)
      n *= d;
    const auto packed = TestMatrix<T>::random(n, 1, 0, 31);
    const auto factors = random_factors<T>(dims, 17, 0, 32);
    for (const auto &[step, gap] : {std::pair<i64, i64>{2, 0}, {1, 3}, {3, 1}}) {
      std::vector<i64> strides;
      i64 next = step;
      for (const i64 d : dims) {
        strides.push_back(next);
        next = next * d + gap;
      }
      TestMatrix<T> apart(next, 1, 0); // full of NaN
      for_each_run(dims, std::span<const i64>(strides), {0, n}, [&](i64 k, i64 offset, i64 count) {
        for (i64 j = 0; j < count; ++j)
          apart.at(offset + j * strides[0], 0) = packed.at(k + j, 0);
      });
      const kernels::DenseView with_gaps{dims, value_type_of<T>, apart.view().data, strides};
      const kernels::DenseView without{dims, value_type_of<T>, packed.view().data};
      for (int mode = 0; mode < static_cast<int>(dims.size()); ++mode)
        for (const int threads : {1, 3}) {
          SCOPED_TRACE(testing::Message() << dims.size() << " modes of " << dims[0] << " x " << dims[1] << ", mode "
                                          << mode << ", step " << step << ", gap " << gap);
          const Range rows{0, dims[static_cast<std::size_t>(mode)]};
          EXPECT_TRUE(mttkrp(*cpu_backend(threads), with_gaps, mode, factors, 0, rows)
                          .same_bits(mttkrp(*cpu_backend(threads), without, mode, factors, 0, rows)));
        }
    }
  }
}

TYPED_TEST(KernelsMttkrp, RowThatHoldsMostOfTheTensor) {
  auto entries = random_entries<i64, TypeParam>({40, 300, 200}, 9000, 0, 8);
  auto heavy = random_entries<i64, TypeParam>({40, 300, 200}, 30000, 0, 9);
  for (std::size_t k = 0; k < heavy.values.size(); ++k)
    entries.add({17, heavy.columns[1][k], heavy.columns[2][k]}, heavy.values[k]);
  const Stored<TypeParam> x(std::move(entries), false);
  check(x, 3, 2, 13);
  if (!light())
    check(x, 16, 0, 12);
}

TYPED_TEST(KernelsMttkrp, KeysOf128Bits) { // 6 modes of 14 bits; 5 other modes make 70
  const std::vector<i64> dims(6, 16384);
  check(Stored<TypeParam>(random_entries<i64, TypeParam>(dims, 3000, 0, 21), false), 3, 0, 22);
}

TYPED_TEST(KernelsMttkrp, EmptyTensorGivesZeros) {
  const Stored<TypeParam> x(random_entries<i64, TypeParam>({4, 5, 6}, 0, 0, 1), true);
  check(x, 3, 1, 2);
}

TYPED_TEST(KernelsMttkrp, ManyRowsAreFoundPerThread) {
  const Stored<TypeParam> x(random_entries<i64, TypeParam>({20000, 6, 5}, 9000, 0, 31), false);
  check(x, 4, 0, 32);
}

// 1.1 million rows of 4 numbers are 34 MiB: two threads' own rows would be more than the 64 MiB that they may take, as
// entries in no order span all rows.
TYPED_TEST(KernelsMttkrp, TooManyRowsAreAddedAtomically) {
  const std::vector<i64> dims{1100000, 5, 4};
  auto entries = random_entries<i64, TypeParam>(dims, 9000, 0, 41);
  for (std::size_t k = 0; k < entries.values.size(); k += 2)
    entries.columns[0][k] = 7; // a row that all threads add to
  const Stored<TypeParam> x(entries, false);
  std::vector<const i64 *> columns;
  for (const auto &column : entries.columns)
    columns.push_back(column.data());
  const kernels::CooView unordered{dims, 9000, value_type_of<TypeParam>, columns.data(), entries.values.data()};
  const auto factors = random_factors<TypeParam>(dims, 4, 0, 42);
  const auto one = cpu_backend(1);
  const auto expected = mttkrp(*one, x.sorted[0].view(), 0, factors, 0, {0, dims[0]});
  const auto magnitude = mttkrp(*one, x.sorted[0].view(), 0, magnitudes(factors), 0, {0, dims[0]});
  for (const int threads : {2, 3}) {
    const Range rows{5, dims[0]};
    expect_near(mttkrp(*cpu_backend(threads), unordered, 0, factors, 0, rows), expected, magnitude, rows, 3);
  }
}

} // namespace
} // namespace td::test
