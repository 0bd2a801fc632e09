// Options "accumulate" and "gather" against the bounds that docs/math.md states for them, in every format on every
// device. Where a backend reads rows as they are it is within the bound of f32 rows all the same.
#include <cmath>

#include <gtest/gtest.h>

#include "support/devices.hpp"
#include "support/oracle.hpp"

namespace {

using namespace tdtest;

constexpr double u32 = 0x1p-24;

std::string precision_of(td_context *context, const td_tensor *x) {
  return text(td_plan_get_str, make<Plan>(td_plan_create_for_tensor, context, x, 8, nullptr), "precision");
}

struct Form {
  const char *name;
  std::vector<std::pair<const char *, std::string>> options; // none: dense
};

const std::vector<Form> &forms() {
  static const std::vector<Form> all{
      {"coo", {{"format", "coo"}}},
      {"coo_owner", {{"format", "coo"}, {"conflicts", "owner"}}},
      {"blco", {{"format", "blco"}}},
      {"blco_private", {{"format", "blco"}, {"conflicts", "private"}}},
      {"blco_atomic", {{"format", "blco"}, {"conflicts", "atomic"}}},
      {"blco_owner", {{"format", "blco"}, {"conflicts", "owner"}}},
      {"sorted", {{"format", "sorted"}, {"tiles", "none"}}},
      {"tiled", {{"format", "sorted"}, {"tiles", "16"}}},
      {"tiled_owner", {{"format", "sorted"}, {"tiles", "16"}, {"conflicts", "owner"}}},
      {"dense", {}},
  };
  return all;
}

struct Where {
  Form form;
  std::string device;
};

std::vector<Where> everywhere() {
  std::vector<Where> all;
  for (const Form &form : forms())
    for (const std::string &device : device_strings())
      all.push_back({form, device});
  return all;
}

/// |came - value| <= bound, element by element.
testing::AssertionResult within(const std::vector<double> &came, const std::vector<long double> &value,
                                const std::vector<long double> &bound, int64_t rows) {
  for (std::size_t e = 0; e < came.size(); ++e)
    if (!(std::fabs(came[e] - value[e]) <= bound[e]))
      return testing::AssertionFailure() << "element (" << static_cast<int64_t>(e) % rows << ", "
                                         << static_cast<int64_t>(e) / rows << "): came " << came[e] << ", expected "
                                         << static_cast<double>(value[e]) << ", error "
                                         << static_cast<double>(std::fabs(came[e] - value[e])) << " > bound "
                                         << static_cast<double>(bound[e]);
  return testing::AssertionSuccess();
}

/// A sum in f64, with every term, that is rounded to f32 once: half a spacing of f32 at it, also below the normal
/// numbers, beside what sums in f64 err by.
std::vector<long double> rounded_once(const Bounded &b) {
  std::vector<long double> bound;
  for (std::size_t e = 0; e < b.value.size(); ++e) {
    const long double sum = gamma(b.roundings[e], TD_F64) * b.magnitude[e] * 1.001L;
    bound.push_back(sum + u32 * (std::fabs(b.value[e]) + sum) + 0x1p-150L);
  }
  return bound;
}

/// A factor's element a is read as a (1 + d) + h with |d| <= 2^-24 and |h| <= 2^-149 times the largest of its column;
/// then come roundings of f64, and products that are smaller than its range.
std::vector<long double> of_f32_rows(const Entries &x, const Factors &factors, int mode, const Bounded &b) {
  const auto size = [](int64_t n) { return static_cast<std::size_t>(n); };
  std::vector<std::vector<long double>> largest;
  for (int m = 0; m < x.order(); ++m) {
    auto &of_column = largest.emplace_back(size(factors.rank), 0);
    for (int64_t r = 0; r < factors.rank; ++r)
      for (int64_t i = 0; i < factors.dims[size(m)]; ++i)
        of_column[size(r)] = std::max(of_column[size(r)], std::fabs(static_cast<long double>(factors.at(m, i, r))));
  }
  std::vector<long double> bound;
  for (std::size_t e = 0; e < b.value.size(); ++e)
    bound.push_back(1.001L * gamma(b.roundings[e], TD_F64) * b.magnitude[e]);
  for (int64_t k = 0; k < x.nnz(); ++k)
    for (int64_t r = 0; r < factors.rank; ++r) {
      long double exact = std::fabs(static_cast<long double>(x.values[size(k)]));
      long double read = exact;
      long double underflow = 0x1p-1074L * x.order();
      for (int m = 0; m < x.order(); ++m) {
        if (m == mode)
          continue;
        const long double a = std::fabs(static_cast<long double>(factors.at(m, x.indices[size(m)][size(k)], r)));
        exact *= a;
        read *= a * (1 + u32) + 0x1p-149L * largest[size(m)][size(r)];
        underflow *= 2 * std::max(1.0L, largest[size(m)][size(r)]);
      }
      bound[size(x.indices[size(mode)][size(k)] + r * b.rows)] += (read - exact) * (1 + 1e-9L) + underflow;
    }
  return bound;
}

class Precision : public testing::TestWithParam<Where> {
protected:
  void SetUp() override {
    context_ = context_if_there(GetParam().device);
    if (!context_)
      GTEST_SKIP() << GetParam().device << ": " << last_error();
  }
  bool on_gpu() const { return GetParam().device.rfind("cuda", 0) == 0; }
  /// Terms of f32 tensors are formed and added in f64 anyhow by the reference, which is also what GPUs in software
  /// compute with, and by the CPU where rows of sums are f64: of entries in no order.
  bool always_in_f64() const {
    return GetParam().device == "reference" ||
           text(td_context_describe, context()).find("in software") != std::string::npos ||
           (on_gpu() ? std::string_view(GetParam().form.name) == "dense"
                     : !sorted() && !GetParam().form.options.empty());
  }
  bool sorted() const {
    const std::string name = GetParam().form.name;
    return name == "sorted" || name.rfind("tiled", 0) == 0;
  }
  td_context *context() const { return *context_; }

  Tensor make(const Entries &entries, td_type type, const char *option, const char *value) const {
    Options options{{option, value}};
    for (const auto &[name, wanted] : GetParam().form.options)
      options.set(name, wanted);
    if (GetParam().form.options.empty())
      return make_dense(context(), entries, type, options);
    return make_sparse(context(), entries, {type, TD_I64, 0}, options);
  }

private:
  std::optional<Context> context_;
};

/// Entries of which each cell holds at most one: a dense tensor rounds what is summed.
Entries some_entries(Random &random, int order, td_type type) {
  const std::vector<int64_t> dims{13, 11, 7, 5};
  return distinct_entries(random, {dims.begin(), dims.begin() + order}, 400, type);
}

TEST_P(Precision, SumsOfF32AreRoundedOnce) {
  Random random(5);
  for (const int order : {3, 4}) {
    const Entries entries = some_entries(random, order, TD_F32);
    const Tensor x = make(entries, TD_F32, "accumulate", "f64");
    EXPECT_EQ(precision_of(context(), x), "f32 with f64 sums");
    for (const int64_t rank : {1, 3, 8, 17, 32, 70}) {
      const Factors factors = random_factors(random, entries.dims, rank, TD_F32);
      for (int mode = 0; mode < order; ++mode) {
        const Bounded b = oracle_mttkrp(entries, factors, mode);
        EXPECT_TRUE(within(mttkrp(context(), x, factors, mode, TD_F32), b.value, rounded_once(b), b.rows))
            << "order " << order << ", rank " << rank << ", mode " << mode;
      }
    }
  }
}

// In each row a product and what it is when rounded to f32: their difference is all that is left, and whoever rounds a
// term loses it.
TEST_P(Precision, TermsThatCancelAreNotLost) {
  Random random(6);
  Entries entries({40, 80, 80});
  Factors factors(entries.dims, 2);
  for (auto &factor : factors.a)
    std::fill(factor.begin(), factor.end(), 1.0);
  for (int64_t i = 0; i < 40; ++i) {
    const double v = rounded(1 + random.symmetric() / 4, TD_F32);
    const double a = factors.at(1, 2 * i, 0) = factors.at(1, 2 * i, 1) = rounded(1 + random.symmetric() / 4, TD_F32);
    const double b = factors.at(2, 2 * i, 0) = factors.at(2, 2 * i, 1) = rounded(1 + random.symmetric() / 4, TD_F32);
    entries.add({i, 2 * i, 2 * i}, v);
    entries.add({i, 2 * i + 1, 2 * i + 1}, -rounded(v * a * b, TD_F32));
  }
  const Bounded expected = oracle_mttkrp(entries, factors, 0);
  const std::vector<long double> bound = rounded_once(expected);
  const Tensor x = make(entries, TD_F32, "accumulate", "f64");
  EXPECT_TRUE(within(mttkrp(context(), x, factors, 0, TD_F32), expected.value, bound, 40));
  const Tensor plain = make(entries, TD_F32, "accumulate", "auto");
  EXPECT_EQ(precision_of(context(), plain), "f32");
  if (!always_in_f64()) {
    EXPECT_FALSE(within(mttkrp(context(), plain, factors, 0, TD_F32), expected.value, bound, 40))
        << "sums in f32 pass too: this test sees nothing";
  }
}

TEST_P(Precision, ManyEqualTermsInOneRow) {
  Entries entries({2, 300, 200});
  for (int64_t j = 0; j < 300; ++j)
    for (int64_t k = 0; k < 200; ++k)
      entries.add({1, j, k}, rounded(0.1, TD_F32));
  Factors factors(entries.dims, 3);
  for (auto &factor : factors.a)
    std::fill(factor.begin(), factor.end(), rounded(0.7, TD_F32));
  const Bounded b = oracle_mttkrp(entries, factors, 0);
  const Tensor x = make(entries, TD_F32, "accumulate", "f64");
  EXPECT_TRUE(within(mttkrp(context(), x, factors, 0, TD_F32), b.value, rounded_once(b), 2));
}

TEST_P(Precision, RowsInF32) {
  Random random(7);
  for (const int order : {3, 4}) {
    const Entries entries = some_entries(random, order, TD_F64);
    const Tensor x = make(entries, TD_F64, "gather", "f32");
    const bool gathers = on_gpu() && sorted();
    EXPECT_EQ(precision_of(context(), x), gathers ? "f64 with f32 rows" : "f64");
    for (const int64_t rank : {1, 3, 8, 17, 32, 70}) {
      const Factors factors = random_factors(random, entries.dims, rank, TD_F64);
      for (int mode = 0; mode < order; ++mode) {
        SCOPED_TRACE("order " + std::to_string(order) + ", rank " + std::to_string(rank) + ", mode " +
                     std::to_string(mode));
        const Bounded b = oracle_mttkrp(entries, factors, mode);
        const auto came = mttkrp(context(), x, factors, mode, TD_F64);
        EXPECT_TRUE(within(came, b.value, of_f32_rows(entries, factors, mode, b), b.rows));
        EXPECT_EQ(bool(within_bound(came, b, TD_F64)), !gathers) << "what f64 rows give";
      }
    }
  }
}

// Each element of a factor lies halfway between two numbers of f32, so that the roundings add up to what they may.
TEST_P(Precision, TheBoundOfF32RowsIsReached) {
  if (!on_gpu() || !sorted())
    GTEST_SKIP() << "rows are read in f64";
  Random random(8);
  Entries entries = some_entries(random, 4, TD_F64);
  std::fill(entries.values.begin(), entries.values.end(), 1.0);
  const Tensor x = make(entries, TD_F64, "gather", "f32");
  Factors factors(entries.dims, 8);
  for (auto &factor : factors.a)
    std::fill(factor.begin(), factor.end(), 1 + 0x1p-24);
  for (int mode = 0; mode < 4; ++mode) {
    const Bounded b = oracle_mttkrp(entries, factors, mode);
    std::vector<long double> bound = of_f32_rows(entries, factors, mode, b);
    const auto came = mttkrp(context(), x, factors, mode, TD_F64);
    EXPECT_TRUE(within(came, b.value, bound, b.rows));
    for (long double &most : bound)
      most *= 0.999L;
    EXPECT_FALSE(within(came, b.value, bound, b.rows)) << "the bound is slack";
  }
}

// Columns at both ends of the range, mixed within one, of zeros, of numbers below the normal ones.
TEST_P(Precision, ExtremeFactors) {
  Random random(9);
  const Entries entries = some_entries(random, 3, TD_F64);
  Factors factors(entries.dims, 6);
  for (int m = 0; m < 3; ++m)
    for (int64_t i = 0; i < entries.dims[static_cast<std::size_t>(m)]; ++i) {
      const double large = m == 1 ? 1e-300 : 1e150;
      factors.at(m, i, 0) = random.symmetric() * large;
      factors.at(m, i, 1) = random.symmetric() * (m == 1 ? i % 2 == 0 ? 1e300 : 1e-300 : 1);
      factors.at(m, i, 2) = m == 1 ? 0 : random.symmetric() * 1e150;
      factors.at(m, i, 3) = random.symmetric() * (m == 2 ? 1e-310 : m == 1 ? 1e300 : 1);
      factors.at(m, i, 4) = random.symmetric() * 1e-100;
      factors.at(m, i, 5) = random.symmetric() * (i == 3 ? 1e100 : 1e80);
    }
  const Tensor x = make(entries, TD_F64, "gather", "f32");
  for (int mode = 0; mode < 3; ++mode) {
    const Bounded b = oracle_mttkrp(entries, factors, mode);
    const auto came = mttkrp(context(), x, factors, mode, TD_F64);
    for (const double v : came)
      EXPECT_TRUE(std::isfinite(v)) << v;
    EXPECT_TRUE(within(came, b.value, of_f32_rows(entries, factors, mode, b), b.rows)) << "mode " << mode;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Precision, testing::ValuesIn(everywhere()), [](const auto &info) {
  return std::string(info.param.form.name) + "_" + name_part(info.param.device);
});

TEST(PrecisionOptions, MeanNothingForTheOtherType) {
  const Context context = make_context("cpu");
  Random random(10);
  for (const td_type type : {TD_F32, TD_F64}) {
    const Entries entries = some_entries(random, 3, type);
    const Options options{{type == TD_F32 ? "gather" : "accumulate", type == TD_F32 ? "f32" : "f64"}};
    EXPECT_EQ(precision_of(context, make_sparse(context, entries, {type, TD_I64, 0}, options)),
              type == TD_F32 ? "f32" : "f64");
  }
}

TEST(PrecisionOptions, SumsInF64ShareNoPartialProduct) {
  const Context context = make_context("cpu");
  Random random(11);
  const Entries entries = some_entries(random, 4, TD_F32);
  EXPECT_EQ(tensor_str(make_dense(context, entries, TD_F32, Options{{"accumulate", "f64"}}), "groups"), "0|1|2|3");
  const Options shared{{"accumulate", "f64"}, {"groups", "0,1|2|3"}};
  for (const bool dense : {false, true}) {
    try {
      if (dense)
        make_dense(context, entries, TD_F32, shared);
      else
        make_sparse(context, entries, {TD_F32, TD_I64, 0}, shared);
      FAIL() << "a partial product is rounded to f32";
    } catch (const Error &failure) {
      EXPECT_EQ(failure.status(), TD_ERR_UNSUPPORTED);
      EXPECT_NE(std::string(failure.what()).find("accumulate"), std::string::npos) << failure.what();
    }
  }
}

} // namespace
