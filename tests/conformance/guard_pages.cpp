// Outputs and inputs that end at an inaccessible page: whoever touches one element too many crashes. (Factors and
// outputs of MTTKRP lie so in every other test of this suite.)
#include <gtest/gtest.h>

#include "support/oracle.hpp"

namespace {

using namespace tdtest;

class GuardPages : public testing::TestWithParam<td_type> {
protected:
  GuardPages() {
    for (double &w : weights_)
      w = random_.symmetric();
    check(td_ktensor_set_weights(k_, weights_.data()));
  }
  td_type type_ = GetParam();
  Random random_{21};
  Context context_ = make_context("cpu:2");
  Factors factors_ = random_factors(random_, {6, 5, 7}, 3, type_);
  std::vector<double> weights_ = std::vector<double>(3);
  Ktensor k_ = make_ktensor(context_, factors_, type_);
};

TEST_P(GuardPages, FactorsWithPadding) {
  for (int32_t m = 0; m < 3; ++m) {
    const int64_t rows = factors_.dims[static_cast<std::size_t>(m)];
    for (const int64_t ld : {rows, rows + 1, rows + 7}) {
      const Matrix a(type_, rows, 3, ld);
      check(td_ktensor_get_factor(k_, m, a.data(), ld, TD_HOST));
      EXPECT_TRUE(a.padding_untouched());
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t i = 0; i < rows; ++i)
          EXPECT_EQ(a.get(i, r), factors_.at(m, i, r));
      check(td_ktensor_set_factor(k_, m, a.data(), ld, TD_HOST)); // the padding is NaN and must not be read
    }
  }
}

TEST_P(GuardPages, Weights) {
  const Array w(TD_F64, 3);
  check(td_ktensor_get_weights(k_, static_cast<double *>(w.data())));
  EXPECT_EQ(w.values(), weights_);
}

TEST_P(GuardPages, ValuesAt) {
  const Bounded full = oracle_full(factors_, weights_);
  for (const td_type index_type : {TD_I32, TD_I64})
    for (const int32_t base : {0, 1}) {
      Random random(4);
      std::vector<Array> columns;
      std::vector<const void *> pointers;
      for (const int64_t d : factors_.dims) {
        Array column(index_type, 11);
        for (int64_t k = 0; k < 11; ++k)
          column.set(k, static_cast<double>(random.below(d) + base));
        columns.push_back(std::move(column));
        pointers.push_back(columns.back().data());
      }
      const Array values(TD_F64, 11);
      check(td_ktensor_values_at(k_, 11, index_type, pointers.data(), base, static_cast<double *>(values.data())));
      for (int64_t k = 0; k < 11; ++k) {
        const auto at = [&](std::size_t m) { return static_cast<int64_t>(columns[m].get(k)) - base; };
        const auto cell = static_cast<std::size_t>(at(0) + 6 * (at(1) + 5 * at(2)));
        EXPECT_NEAR(values.get(k), static_cast<double>(full.value[cell]),
                    gamma(full.roundings[cell], TD_F64) * static_cast<double>(full.magnitude[cell]));
      }
    }
}

TEST_P(GuardPages, FullTensors) {
  const Array values(type_, 6 * 5 * 7);
  check(td_ktensor_full(k_, nullptr, type_, values.data()));
  EXPECT_TRUE(within_bound(values.values(), oracle_full(factors_, weights_), type_));

  const Entries cells = random_cells(random_, {6, 5, 7}, type_);
  const Tensor x = make_dense(context_, cells, type_);
  check(td_tensor_get_dense(x, nullptr, type_, values.data()));
  EXPECT_EQ(values.values(), cells.values);
}

TEST_P(GuardPages, Entries) {
  const Entries entries = distinct_entries(random_, {6, 5, 7}, 40, type_);
  for (const char *format : {"coo", "blco", "sorted"}) {
    const Tensor x = make_tensor(context_, format, entries, {type_, TD_I64, 0});
    std::vector<Array> columns;
    std::vector<void *> pointers;
    for (int m = 0; m < 3; ++m) {
      columns.emplace_back(TD_I32, int64_t{40});
      pointers.push_back(columns.back().data());
    }
    const Array values(type_, int64_t{40});
    check(td_tensor_get_entries(x, TD_I32, pointers.data(), 1, type_, values.data()));
    for (std::size_t m = 0; m < 3; ++m) {
      const Array counts(TD_I64, entries.dims[m]);
      check(td_tensor_slice_counts(x, static_cast<int32_t>(m), static_cast<int64_t *>(counts.data())));
      std::vector<double> expected(static_cast<std::size_t>(entries.dims[m]), 0.0);
      for (const int64_t i : entries.indices[m])
        expected[static_cast<std::size_t>(i)] += 1;
      EXPECT_EQ(counts.values(), expected) << format << ", mode " << m;
    }
  }
}

TEST_P(GuardPages, Texts) {
  const Array text(TD_F64, int64_t{1}); // 8 bytes: every text is longer and must be cut
  char *buf = static_cast<char *>(text.data());
  int64_t needed = 0;
  check(td_context_describe(context_, buf, 8, &needed));
  EXPECT_GT(needed, 8);
  EXPECT_EQ(buf[7], '\0');
  check(td_option_describe(0, buf, 8, &needed));
  EXPECT_GT(needed, 8);
  EXPECT_EQ(buf[7], '\0');
  EXPECT_EQ(td_context_create("warp drive", nullptr, nullptr), TD_ERR_ARGUMENT);
  EXPECT_GT(td_last_error(buf, 8), 8);
  EXPECT_EQ(buf[7], '\0');
}

INSTANTIATE_TEST_SUITE_P(All, GuardPages, testing::Values(TD_F32, TD_F64),
                         [](const auto &info) { return info.param == TD_F32 ? "f32" : "f64"; });

} // namespace
