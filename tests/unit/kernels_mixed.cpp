// MTTKRP with sums wider than values, and with rows narrower than them, against the reference: on the CPU, and on a GPU
// where there is one.
#include <cstdlib>
#include <optional>

#include "core/error.hpp"
#include "kernels/loader.hpp"
#include "unit/kernels_copies.hpp"

namespace td::test {
namespace {

using kernels::Backend;
using kernels::Conflicts;
using kernels::DeviceBuffer;

struct Asked {
  Range rows;
  Range entries;
  Conflicts conflicts = Conflicts::automatic;
  bool add = false;
};

/// Every way of asking for parts of a result of n rows.
std::vector<Asked> ways(i64 n, i64 entries, bool dense) {
  std::vector<Asked> all;
  for (const bool add : {false, true})
    for (const Conflicts policy : {Conflicts::automatic, Conflicts::owner}) {
      all.push_back({{0, n}, {0, entries}, policy, add});
      all.push_back({{n / 3, n}, {0, entries}, policy, add});
      if (!dense)
        all.push_back({{0, n}, {entries / 4, entries / 4 * 3}, policy, add});
    }
  return all;
}

/// `factors` and `exponents` in the backend's memory, but that of `mode`, which must not be read.
TestMatrix<double> mttkrp(Backend &backend, const kernels::TensorView &x, int mode,
                          std::span<const ConstMatrix> factors, std::span<const double *const> exponents, i64 rank,
                          i64 pad, const Asked &asked) {
  TestMatrix<double> out(factors[static_cast<std::size_t>(mode)].rows, rank, pad);
  if (asked.add)
    set_before(out, asked.rows);
  Matrix result = out.view();
  const DeviceBuffer memory(backend, result.rows * result.ld * 8, "a test's result");
  backend.upload(memory.data(), result.data, memory.bytes());
  result.data = memory.data();
  backend.mttkrp(x, {mode, factors, result, asked.rows, asked.entries, asked.conflicts, asked.add, exponents});
  backend.download(out.view().data, memory.data(), memory.bytes());
  return out;
}

/// Sums in f64 of at most `terms` terms, in any order; what was there before is at most 2. Below the normal
/// numbers a spacing.
void expect_near(const TestMatrix<double> &got, const TestMatrix<double> &expected, const TestMatrix<double> &magnitude,
                 const Asked &asked, double terms) {
  for (i64 i = 0; i < got.rows(); ++i)
    for (i64 r = 0; r < got.cols(); ++r) {
      if (i < asked.rows.begin || i >= asked.rows.end) {
        ASSERT_TRUE(std::isnan(got.at(i, r))) << "row " << i << " is not one of those asked for";
        continue;
      }
      const double allowed = terms * 0x1p-52 * ((asked.add ? 2 : 0) + magnitude.at(i, r)) + 0x1p-1073;
      ASSERT_NEAR(got.at(i, r), expected.at(i, r), allowed) << "row " << i << ", column " << r;
    }
  EXPECT_TRUE(got.padding_untouched());
}

/// The copies that a backend makes of factors, in its memory.
struct Rounded {
  std::vector<DeviceBuffer> memory;
  std::vector<ConstMatrix> rows;
  std::vector<const double *> exponents;

  Rounded(Backend &backend, const std::vector<TestMatrix<double>> &factors) {
    for (const auto &factor : factors) {
      ConstMatrix a = factor.view();
      const i64 columns = kernels::gathered_columns(a.cols);
      Copies there(backend);
      a.data = there.of_bytes(a.data, a.rows * a.ld * 8);
      const Matrix to{memory.emplace_back(backend, a.rows * columns * 4, "a test's rows").data(), ValueType::f32,
                      a.rows, columns, columns};
      double *powers = memory.emplace_back(backend, a.cols * 8, "a test's exponents").f64();
      backend.to_f32(a, to, powers);
      exponents.push_back(powers);
      rows.push_back(ConstMatrix(to).columns(0, a.cols));
    }
  }
  std::vector<char> bytes(Backend &backend) const {
    std::vector<char> all;
    for (const DeviceBuffer &buffer : memory) {
      const std::size_t at = all.size();
      all.resize(at + static_cast<std::size_t>(buffer.bytes()));
      backend.download(all.data() + at, buffer.data(), buffer.bytes());
    }
    return all;
  }
};

/// Columns near both ends of the range, one of zeros and one of the smallest numbers.
std::vector<TestMatrix<double>> uneven_factors(const std::vector<i64> &dims, i64 rank, i64 pad, unsigned seed) {
  auto factors = random_factors<double>(dims, rank, pad, seed);
  int sign = 1;
  for (auto &a : factors) {
    a.fill([&](i64 i, i64 r) {
      return r % 6 == 4 ? 0.0 : std::ldexp(a.at(i, r), r % 6 == 5 ? -1040 : sign * 120 * static_cast<int>(r % 6 - 1));
    });
    sign = -sign;
  }
  return factors;
}

class KernelsMixed : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    try {
      backend_ = kernels::open_backends(kernels::parse_devices(GetParam()), 3).front();
    } catch (const Error &error) {
      GTEST_SKIP() << GetParam() << ": " << error.what();
    }
  }
  Backend &backend() const { return *backend_; }

  /// Sums of the first `modes` modes are compared.
  void check_sums(const Stored<float> &x, i64 rank, i64 pad, int modes = max_order) {
    const auto factors = random_factors<float>(x.dims, rank, pad, 3);
    const auto positive = magnitudes(factors);
    for (int mode = 0; mode < std::min(modes, static_cast<int>(x.dims.size())); ++mode)
      for (const auto &[name, form] : x.views(mode)) {
        SCOPED_TRACE(testing::Message() << name << ", mode " << mode << ", rank " << rank << ", padding " << pad);
        const i64 n = x.dims[static_cast<std::size_t>(mode)];
        const i64 entries = kernels::entries_of(form);
        const auto magnitude =
            mttkrp(*reference_, x.coo.view(), mode, views(positive), {}, rank, 0, {{0, n}, {0, x.coo.values.size()}});
        Copies copies(backend());
        const auto there = copies.of(form);
        auto placed = views(factors);
        for (ConstMatrix &a : placed)
          a.data = copies.of_bytes(a.data, a.rows * a.ld * 4);
        auto asked = ways(n, entries, std::string_view(name) == "dense");
        if (std::string_view(name) == "blco")
          asked.push_back({{0, n}, {0, entries}, Conflicts::privatize});
        for (const Asked &way : asked)
          expect_near(mttkrp(backend(), there, mode, placed, {}, rank, pad, way),
                      mttkrp(*reference_, form, mode, views(factors), {}, rank, 0, way), magnitude, way,
                      static_cast<double>(entries) + 20);
      }
  }

  void check_rows(const Stored<double> &x, i64 rank, i64 pad, int modes = max_order) {
    const auto factors = uneven_factors(x.dims, rank, pad, 4);
    const Rounded here(*reference_, factors);
    const Rounded there(backend(), factors);
    EXPECT_EQ(there.bytes(backend()), here.bytes(*reference_));
    const Rounded positive(*reference_, magnitudes(factors));
    for (int mode = 0; mode < std::min(modes, static_cast<int>(x.dims.size())); ++mode)
      for (const auto &[name, form] : x.views(mode)) {
        if (!backend().gathers_f32(form))
          continue;
        SCOPED_TRACE(testing::Message() << name << ", mode " << mode << ", rank " << rank << ", padding " << pad);
        const i64 n = x.dims[static_cast<std::size_t>(mode)];
        const auto magnitude = mttkrp(*reference_, form, mode, positive.rows, positive.exponents, rank, 0,
                                      {{0, n}, {0, x.coo.values.size()}});
        Copies copies(backend());
        const auto placed = copies.of(form);
        for (const Asked &way : ways(n, x.coo.values.size(), false))
          expect_near(mttkrp(backend(), placed, mode, there.rows, there.exponents, rank, pad, way),
                      mttkrp(*reference_, form, mode, here.rows, here.exponents, rank, 0, way), magnitude, way,
                      static_cast<double>(x.coo.values.size()) + 20);
      }
  }

  template <class Body> void for_each_rank(Body &&body) {
    if (light()) {
      body(6, 1);
      body(32, 0);
      return;
    }
    for (const i64 rank : {1, 2, 3, 6, 8, 17, 32, 50, 64, 70, 130})
      for (const i64 pad : {0, 1})
        body(rank, pad);
  }

private:
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<Backend> reference_ = kernels::reference::make_backend();
};

TEST_P(KernelsMixed, SumsInF64) {
  const Stored<float> x(random_entries<i64, float>({23, 9, 14}, 1500, 0, 7), true);
  for_each_rank([&](i64 rank, i64 pad) { check_sums(x, rank, pad); });
  if (light())
    return;
  check_sums({random_entries<i64, float>({70, 65}, 900, 0, 5), true}, 16, 0);
  check_sums({random_entries<i64, float>({9, 8, 7, 6}, 900, 0, 5), true}, 16, 0);
  check_sums({random_entries<i64, float>({5, 4, 6, 3, 4}, 900, 0, 5), true}, 16, 0);
}

TEST_P(KernelsMixed, RowsInF32) {
  const Stored<double> x(random_entries<i64, double>({23, 9, 14}, 1500, 0, 7), false);
  for_each_rank([&](i64 rank, i64 pad) { check_rows(x, rank, pad); });
  if (light())
    return;
  check_rows({random_entries<i64, double>({70, 65}, 900, 0, 5), false}, 16, 0);
  check_rows({random_entries<i64, double>({9, 8, 7, 6}, 900, 0, 5), false}, 16, 0);
  check_rows({random_entries<i64, double>({5, 4, 6, 3, 4}, 900, 0, 5), false}, 16, 0);
}

TEST_P(KernelsMixed, ManyBlocksAndTiles) {
  if (light() || !backend().has_own_memory())
    GTEST_SKIP() << "more entries for a GPU's many blocks; left out by TD_TEST_LIGHT";
  for (const auto &dims : std::vector<std::vector<i64>>{{300, 700, 500}, {2, 900, 40, 9}}) {
    check_sums({random_entries<i64, float>(dims, 60000, 0, 6), false}, 32, 0);
    check_rows({random_entries<i64, double>(dims, 60000, 0, 6), false}, 32, 0);
  }
}

TEST_P(KernelsMixed, KeysOf64Bits) {
  // In mode 0, in tiles 32; groups of 8 lanes, and of 16 above 32 columns. f32 copies of long factors take many
  // entries.
  const std::vector<i64> three{5, 65'537, 65'536};
  const std::vector<i64> four{5, 1100, 1100, 1100};
  for (const i64 rank : {32, 40}) {
    check_sums({random_entries<i64, float>(three, 3000, 0, 22), false}, rank, 0, 1);
    check_sums({random_entries<i64, float>(four, 6000, 0, 22), false}, rank, 0, 1);
    check_rows({random_entries<i64, double>(four, 6000, 0, 22), false}, rank, 0, 1);
    if (!light() && backend().has_own_memory())
      check_rows({random_entries<i64, double>(three, 340'000, 0, 22), false}, rank, 0, 1);
  }
}

TEST_P(KernelsMixed, KeysOf128Bits) {
  const std::vector<i64> dims(6, 16384);
  check_sums({random_entries<i64, float>(dims, 3000, 0, 21), false}, 8, 0);
  check_rows({random_entries<i64, double>(dims, 3000, 0, 21), false}, 8, 0);
}

INSTANTIATE_TEST_SUITE_P(All, KernelsMixed, testing::Values("cpu", "cuda:0"),
                         [](const auto &info) { return std::string(info.param, 0, 4) == "cuda" ? "cuda" : "cpu"; });

} // namespace
} // namespace td::test
