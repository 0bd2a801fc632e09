// Sums in f64 and rows in f32 as the solver asks a device for them: one that has little memory, so that tensors pass
// through it in parts.
#include "tensor/planned.hpp"
#include "unit/kernels_support.hpp"
#include "unit/small_device.hpp"
#include "unit/solver_make.hpp"

namespace td::test {
namespace {

constexpr double u32 = 0x1p-24;

template <class T> TensorPointer tensor_with(CallerEntries<i64, T> entries, const char *option, const char *value) {
  Options options;
  options.set_text("format", "sorted");
  options.set_text("groups", "none");
  options.set_text(option, value);
  return tensor::Tensor::make_sparse(entries.view(), options, 1, "");
}

/// Entries that take some parts to stream.
template <class T> CallerEntries<i64, T> entries() { return random_entries<i64, T>({200, 150, 90}, 9000, 0, 3); }

template <class T>
TestMatrix<T> mttkrp(const TensorPointer &x, int mode, const std::vector<TestMatrix<T>> &factors, i64 room) {
  const Backends backends{std::make_shared<SmallDevice>(room)};
  const auto f = views(factors);
  const auto &own = factors[static_cast<std::size_t>(mode)];
  TestMatrix<T> out(own.rows(), own.cols(), 0);
  mttkrp_of_columns(backends, *x, mode, f, out.view());
  return out;
}

/// The definition: sums of products, and of their magnitudes.
template <class T> struct Exact {
  std::vector<long double> sum, magnitude;

  Exact(CallerEntries<i64, T> x, int mode, const std::vector<TestMatrix<T>> &factors) {
    const auto m = static_cast<std::size_t>(mode);
    const i64 rank = factors[m].cols();
    sum.assign(static_cast<std::size_t>(factors[m].rows() * rank), 0);
    magnitude = sum;
    for (std::size_t k = 0; k < x.values.size(); ++k)
      for (i64 r = 0; r < rank; ++r) {
        long double term = x.values[k];
        for (std::size_t n = 0; n < factors.size(); ++n)
          if (n != m)
            term *= factors[n].at(x.columns[n][k], r);
        const auto at = static_cast<std::size_t>(x.columns[m][k] * rank + r);
        sum[at] += term;
        magnitude[at] += std::abs(term);
      }
  }
};

constexpr i64 plenty = i64{1} << 30;
constexpr i64 little = 40000;

TEST(SolverMixed, SumsThatPassThroughInPartsAreRoundedOnce) {
  const auto x = tensor_with(entries<float>(), "accumulate", "f64");
  const auto plain = tensor_with(entries<float>(), "accumulate", "auto");
  const auto factors = random_factors<float>({200, 150, 90}, 5, 0, 8);
  for (int mode = 0; mode < 3; ++mode) {
    const Exact<float> exact(entries<float>(), mode, factors);
    for (const i64 room : {plenty, little}) {
      const auto got = mttkrp(x, mode, factors, room);
      for (i64 i = 0; i < got.rows(); ++i)
        for (i64 r = 0; r < 5; ++r) {
          const auto at = static_cast<std::size_t>(i * 5 + r);
          const long double in_f64 = 9000 * 0x1p-53L * exact.magnitude[at];
          EXPECT_LE(std::abs(got.at(i, r) - exact.sum[at]), u32 * std::abs(exact.sum[at]) + 2 * in_f64)
              << "mode " << mode << ", room " << room;
        }
    }
  }
}

TEST(SolverMixed, RowsInF32AreReadWhereADeviceGains) {
  const auto x = tensor_with(entries<double>(), "gather", "f32");
  const auto factors = random_factors<double>({200, 150, 90}, 5, 0, 8);
  for (int mode = 0; mode < 3; ++mode) {
    const Exact<double> exact(entries<double>(), mode, factors);
    const auto whole = mttkrp(x, mode, factors, plenty);
    const auto parts = mttkrp(x, mode, factors, little);
    double worst = 0;
    for (i64 i = 0; i < whole.rows(); ++i)
      for (i64 r = 0; r < 5; ++r) {
        const auto at = static_cast<std::size_t>(i * 5 + r);
        const double error = static_cast<double>(std::abs(whole.at(i, r) - exact.sum[at]) / exact.magnitude[at]);
        EXPECT_LE(error, 2.01 * u32) << "mode " << mode; // two factors
        EXPECT_NEAR(parts.at(i, r), whole.at(i, r), 9000 * 0x1p-52 * static_cast<double>(exact.magnitude[at]));
        worst = std::max(worst, error);
      }
    EXPECT_GT(worst, 1e-10) << "rows were read in f64";
  }
}

TEST(SolverMixed, AFactorIsRoundedOnceAnUpdate) {
  const auto x = tensor_with(entries<double>(), "gather", "f32");
  const auto full = tensor_with(entries<double>(), "gather", "auto");
  const auto device = std::make_shared<SmallDevice>(plenty);
  const auto run = [&](const TensorPointer &tensor) {
    auto request = request_for(*tensor, 3);
    request.backends = {device};
    set(request, {{"max_iters", "4"}, {"tol", "0"}, {"exact_residual", "never"}});
    return solvers::cpals(request);
  };
  const auto mixed = run(x);
  // The first iteration rounds the start of modes 1 and 2, and after that each factor as it is updated; the last
  // update of mode 2 is used by nobody.
  EXPECT_EQ(device->take_roundings(), 2 + 3 * 4 - 1);
  const auto exact = run(full);
  EXPECT_EQ(device->take_roundings(), 0);
  ASSERT_EQ(mixed.report.fit.size(), exact.report.fit.size());
  EXPECT_NE(mixed.report.fit.back(), exact.report.fit.back());
  for (std::size_t k = 0; k < exact.report.fit.size(); ++k)
    EXPECT_NEAR(mixed.report.fit[k], exact.report.fit[k], 1e-6) << "iteration " << k;
}

TEST(SolverMixed, WhatTheyTakeIsPlanned) {
  const auto solver_bytes = [](const TensorPointer &tensor) {
    plan::PlanRequest request{{}, 5, {std::make_shared<SmallDevice>(plenty)}, "small"};
    return tensor::plan_of(*tensor, request).device.solver;
  };
  const i64 full = solver_bytes(tensor_with(entries<double>(), "gather", "auto"));
  EXPECT_EQ(solver_bytes(tensor_with(entries<double>(), "gather", "f32")) - full,
            (200 + 150 + 90) * 8 * 4); // of 5 columns 8
  const i64 narrow = solver_bytes(tensor_with(entries<float>(), "accumulate", "auto"));
  EXPECT_EQ(solver_bytes(tensor_with(entries<float>(), "accumulate", "f64")) - narrow, 200 * 5 * 8);
}

} // namespace
} // namespace td::test
