// MTTKRP on a GPU, where there is one, against the reference: every format, mode, type and rank, parts of the rows and
// of the entries, and sums in stored order.
#include <optional>

#include "core/error.hpp"
#include "kernels/loader.hpp"
#include "unit/kernels_copies.hpp"

namespace td::test {
namespace {

using kernels::Backend;
using kernels::DeviceBuffer;

struct Asked {
  Range rows;
  std::optional<Range> entries = std::nullopt;
  kernels::Conflicts conflicts = kernels::Conflicts::automatic;
  bool add = false;
};

template <class T>
TestMatrix<T> mttkrp(Backend &backend, const kernels::TensorView &x, int mode,
                     const std::vector<TestMatrix<T>> &factors, i64 pad, const Asked &asked) {
  Copies copies(backend);
  const kernels::TensorView there = copies.of(x);
  std::vector<ConstMatrix> f = views(factors);
  for (ConstMatrix &a : f)
    a.data = copies.of_bytes(a.data, a.rows * a.ld * size_of(a.type));
  const auto &own = factors[static_cast<std::size_t>(mode)];
  TestMatrix<T> out(own.rows(), own.cols(), pad);
  if (asked.add)
    set_before(out, asked.rows);
  Matrix result = out.view();
  const i64 bytes = result.rows * result.ld * size_of(result.type);
  const DeviceBuffer memory(backend, bytes, "a test's result");
  backend.upload(memory.data(), result.data, bytes);
  result.data = memory.data();
  const Range all{0, kernels::entries_of(x)};
  backend.mttkrp(there, {mode, f, result, asked.rows, asked.entries.value_or(all), asked.conflicts, asked.add});
  backend.download(out.view().data, memory.data(), bytes);
  return out;
}

/// Sums of at most n terms, of `order` roundings each, in any order: |error| <= (order + n) u sum|terms|. Sums in f64
/// are no longer than the longest row; those in T have at most 256 terms on a GPU, as on a CPU, except where each entry
/// is added to memory.
template <class T>
void expect_near(const TestMatrix<T> &got, const TestMatrix<T> &expected, const TestMatrix<T> &magnitude, Range rows,
                 double terms, double before = 0) {
  for (i64 i = 0; i < got.rows(); ++i)
    for (i64 r = 0; r < got.cols(); ++r) {
      if (i < rows.begin || i >= rows.end) {
        ASSERT_TRUE(std::isnan(got.at(i, r))) << "row " << i << " is not one of those asked for";
        continue;
      }
      const double allowed = terms * epsilon_of(value_type_of<T>) * (before + static_cast<double>(magnitude.at(i, r)));
      ASSERT_NEAR(got.at(i, r), expected.at(i, r), allowed) << "row " << i << ", column " << r;
    }
  EXPECT_TRUE(got.padding_untouched());
}

template <class T> class KernelsMttkrpCuda : public testing::Test {
protected:
  void SetUp() override {
    try {
      backend_ = kernels::open_backends(kernels::parse_devices("cuda:0"), 0).front();
    } catch (const Error &error) {
      GTEST_SKIP() << "no GPU: " << error.what();
    }
  }

  /// Every form, mode and way of asking.
  void check(const Stored<T> &x, i64 rank, i64 pad, unsigned seed) {
    constexpr auto owner = kernels::Conflicts::owner;
    const auto reference = kernels::reference::make_backend();
    const auto factors = random_factors<T>(x.dims, rank, pad, seed);
    const auto positive = magnitudes(factors);
    const i64 nnz = x.coo.values.size();
    for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode) {
      const i64 n = x.dims[static_cast<std::size_t>(mode)];
      const auto magnitude = mttkrp(*reference, x.coo.view(), mode, positive, 0, {{0, n}});
      const double terms = static_cast<double>(nnz) + 20;
      for (const auto &[name, form] : x.views(mode)) {
        SCOPED_TRACE(testing::Message() << name << ", " << name_of(value_type_of<T>) << ", mode " << mode << " of "
                                        << x.dims.size() << ", rank " << rank << ", padding " << pad);
        std::vector<Asked> ways{
            {{0, n}}, {{n / 3, n}}, {{0, n}, std::nullopt, owner}, {{n / 4, n / 2}, std::nullopt, owner}};
        std::vector<kernels::Conflicts> policies{kernels::Conflicts::automatic, owner};
        if (std::string_view(name) == "blco")
          policies.insert(policies.end(), {kernels::Conflicts::privatize, kernels::Conflicts::atomic});
        if (std::string_view(name) != "dense")
          for (const auto policy : policies)
            ways.insert(ways.end(), {{{0, n}, Range{nnz / 4, nnz / 4 * 3}, policy},
                                     {{n / 3, n}, Range{nnz / 3, nnz / 3}, policy},
                                     {{n / 3, n}, Range{0, std::min<i64>(nnz, 1)}, policy}});
        const std::size_t once = ways.size();
        for (std::size_t k = 0; k < once; ++k) {
          ways.push_back(ways[k]);
          ways.back().add = true;
        }
        for (const Asked &asked : ways) {
          const auto expected = mttkrp(*reference, form, mode, factors, 0, asked);
          const auto got = mttkrp(*this->backend_, form, mode, factors, pad, asked);
          expect_near(got, expected, magnitude, asked.rows, terms, asked.add ? 2 : 0);
          if (asked.conflicts == owner) {
            EXPECT_TRUE(mttkrp(*this->backend_, form, mode, factors, pad, asked).same_bits(got)) << "other bits";
          }
        }
      }
    }
  }

  std::shared_ptr<Backend> backend_;
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(KernelsMttkrpCuda, Types);

TYPED_TEST(KernelsMttkrpCuda, EveryRank) {
  const Stored<TypeParam> x(random_entries<i64, TypeParam>({23, 9, 14}, 1500, 0, 7), true);
  for (const i64 rank : {1, 2, 3, 5, 8, 10, 16, 17, 32, 50, 70, 100, 130})
    for (const i64 pad : {0, 2, 3})
      this->check(x, rank, pad, 11);
}

TYPED_TEST(KernelsMttkrpCuda, EveryOrder) {
  for (const auto &dims : std::vector<std::vector<i64>>{
           {70, 65}, {1, 1}, {130, 3, 2}, {2, 3, 130}, {70, 4, 5, 3}, {5, 1, 6, 3, 4}, {3, 2, 3, 2, 3, 2}})
    for (const i64 rank : {10, 16})
      this->check(Stored<TypeParam>(random_entries<i64, TypeParam>(dims, 900, 0, 5), true), rank, 0, 3);
}

TYPED_TEST(KernelsMttkrpCuda, ManyBlocksAndTiles) {
  for (const auto &dims :
       std::vector<std::vector<i64>>{{300, 700, 500}, {2, 3000, 200}, {20000, 6, 5}, {40, 90, 70, 9}})
    this->check(Stored<TypeParam>(random_entries<i64, TypeParam>(dims, 300000, 0, 6), false), 32, 0, 4);
}

// Of a result of more than 16 MiB only rows without entries are zeroed: many in a row, few among others, at the ends.
TYPED_TEST(KernelsMttkrpCuda, RowsWithoutEntries) {
  constexpr i64 n = 150000, rank = 40;
  const auto reference = kernels::reference::make_backend();
  for (const i64 nnz : {i64{3}, 4 * n}) {
    const Stored<TypeParam> x(random_entries<i64, TypeParam>({n, 40}, nnz, 0, 9), false);
    const auto factors = random_factors<TypeParam>(x.dims, rank, 0, 4);
    const i64 entries = x.coo.values.size();
    const auto magnitude = mttkrp(*reference, x.coo.view(), 0, magnitudes(factors), 0, {{0, n}});
    for (const Asked &asked : {Asked{{0, n}}, Asked{{n / 4, n - 1}}, Asked{{0, n}, Range{entries / 4, entries / 2}},
                               Asked{{0, n}, std::nullopt, kernels::Conflicts::automatic, true}}) {
      SCOPED_TRACE(testing::Message() << entries << " entries, rows from " << asked.rows.begin);
      const auto expected = mttkrp(*reference, x.sorted[0].view(), 0, factors, 0, asked);
      const auto got = mttkrp(*this->backend_, x.sorted[0].view(), 0, factors, 0, asked);
      expect_near(got, expected, magnitude, asked.rows, 100, asked.add ? 2 : 0);
    }
  }
}

TYPED_TEST(KernelsMttkrpCuda, RowThatHoldsMostOfTheTensor) {
  auto entries = random_entries<i64, TypeParam>({40, 300, 200}, 9000, 0, 8);
  auto heavy = random_entries<i64, TypeParam>({40, 300, 200}, 60000, 0, 9);
  for (std::size_t k = 0; k < heavy.values.size(); ++k)
    entries.add({17, heavy.columns[1][k], heavy.columns[2][k]}, heavy.values[k]);
  const Stored<TypeParam> x(std::move(entries), false);
  this->check(x, 16, 0, 12);
  this->check(x, 3, 2, 13);
}

TYPED_TEST(KernelsMttkrpCuda, KeysOf128Bits) { // 6 modes of 14 bits; 5 other modes make 70
  const std::vector<i64> dims(6, 16384);
  const Stored<TypeParam> x(random_entries<i64, TypeParam>(dims, 3000, 0, 21), false);
  this->check(x, 3, 0, 22);
  this->check(x, 32, 0, 22);
}

TYPED_TEST(KernelsMttkrpCuda, EmptyTensorGivesZeros) {
  const Stored<TypeParam> x(random_entries<i64, TypeParam>({4, 5, 6}, 0, 0, 1), true);
  this->check(x, 3, 1, 2);
}

} // namespace
} // namespace td::test
