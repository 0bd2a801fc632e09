#include "selftest_cases.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "draw.hpp"
#include "planted.hpp"

namespace cli {

namespace {

using Matrix = std::vector<double>; // column-major, no padding

void expect_near(const std::string &what, double came, double expected, double tolerance) {
  if (!(std::abs(came - expected) <= tolerance))
    throw Failure(exit_failed, fmt::format("{}: came {}, expected {} within {}", what, came, expected, tolerance));
}

struct Entry {
  std::int64_t i, j, k;
  double value;
};

Tensor sparse3(td_context *context, std::array<std::int64_t, 3> d, const std::vector<Entry> &entries) {
  std::array<std::vector<std::int64_t>, 3> at;
  std::vector<double> values;
  for (const Entry &e : entries) {
    at[0].push_back(e.i);
    at[1].push_back(e.j);
    at[2].push_back(e.k);
    values.push_back(e.value);
  }
  const std::array<const void *, 3> indices = {at[0].data(), at[1].data(), at[2].data()};
  return make<Tensor>(td_tensor_create, context, 3, d.data(), static_cast<std::int64_t>(entries.size()), TD_I64,
                      indices.data(), 0, TD_F64, values.data(), TD_HOST, nullptr);
}

Tensor dense(td_context *context, const std::vector<std::int64_t> &d, const std::vector<double> &values) {
  return make<Tensor>(td_tensor_create_dense, context, static_cast<std::int32_t>(d.size()), d.data(), nullptr, TD_F64,
                      values.data(), TD_HOST, nullptr);
}

Ktensor ktensor(td_context *context, const std::vector<std::int64_t> &d, std::int64_t rank,
                const std::vector<Matrix> &factors) {
  Ktensor k = make<Ktensor>(td_ktensor_create, context, static_cast<std::int32_t>(d.size()), d.data(), rank, TD_F64);
  for (std::size_t m = 0; m < d.size(); ++m)
    check(td_ktensor_set_factor(k, static_cast<std::int32_t>(m), factors[m].data(), d[m], TD_HOST));
  return k;
}

Matrix mttkrp(td_context *context, const td_tensor *x, std::int32_t mode, std::int64_t rank,
              const std::vector<Matrix> &factors) {
  const auto d = dims_of(x);
  std::vector<const void *> pointers;
  for (const Matrix &f : factors)
    pointers.push_back(f.data());
  const auto rows = d[static_cast<std::size_t>(mode)];
  Matrix out(static_cast<std::size_t>(rows * rank));
  check(td_mttkrp(context, x, mode, rank, pointers.data(), d.data(), out.data(), rows, TD_HOST));
  return out;
}

double fit_of(const Fitted &f) { return get<double>(td_report_get_f64, f.report, "fit"); }

void genten_rank_two(td_context *context) {
  const std::vector<Entry> entries = {{0, 0, 0, 2}, {1, 0, 0, 1}, {0, 1, 0, 1}, {1, 1, 0, 1},
                                      {0, 2, 0, 1}, {0, 0, 1, 1}, {0, 2, 1, 1}, {0, 0, 3, 1},
                                      {1, 0, 3, 1}, {0, 1, 3, 1}, {1, 1, 3, 1}};
  const Tensor x = sparse3(context, {2, 3, 4}, entries);
  const std::vector<std::int64_t> d = {2, 3, 4};
  const Ktensor start =
      ktensor(context, d, 2, {{.8, .2, .5, .5}, {.5, .1, .5, .5, .5, .1}, {.7, .7, .1, .1, .7, .1, .1, .7}});
  const Options options{{"tol", "1e-6"}, {"max_iters", "100"}};
  std::vector<double> full(24);
  check(td_tensor_get_dense(x, nullptr, TD_F64, full.data()));
  const Tensor same = dense(context, d, full);
  for (const td_tensor *tensor : {x.get(), same.get()}) {
    const Fitted f = cpals(context, tensor, 2, options, start);
    const auto w = weights_of(f.model);
    expect_near("first weight", w[0], 2.828427, 2.5e-3); // the tolerance of the test that this comes from
    expect_near("second weight", w[1], 2.0, 2.5e-3);
    expect_near("fit", fit_of(f), 1, 0.01);
  }
  const Ktensor zero = ktensor(context, d, 2, {Matrix(4), Matrix(6), Matrix(8)});
  Ktensor model;
  const td_status status = td_cpals(context, x, 2, zero, nullptr, nullptr, nullptr, model.out(), nullptr);
  if (status != TD_ERR_ARGUMENT)
    throw Failure(exit_failed,
                  fmt::format("an all-zero start gave {}, expected TD_ERR_ARGUMENT", td_status_name(status)));
}

void pyttb_mttkrp(td_context *context) {
  const std::vector<std::int64_t> d = {2, 3, 4, 5, 6};
  std::vector<double> values(720);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<double>(k + 1);
  const Tensor x = dense(context, d, values);
  std::vector<Matrix> ones;
  for (const auto length : d)
    ones.emplace_back(static_cast<std::size_t>(2 * length), 1.0);
  const std::vector<std::vector<double>> expected = {{129600, 129960},
                                                     {86040, 86520, 87000},
                                                     {63270, 64350, 65430, 66510},
                                                     {45000, 48456, 51912, 55368, 58824},
                                                     {7260, 21660, 36060, 50460, 64860, 79260}};
  for (std::size_t m = 0; m < d.size(); ++m) {
    const Matrix out = mttkrp(context, x, static_cast<std::int32_t>(m), 2, ones);
    const std::size_t rows = expected[m].size();
    for (std::size_t k = 0; k < out.size(); ++k) // whole numbers far below 2^53: sums are exact in any order
      expect_near(fmt::format("mode {} row {} column {}", m, k % rows, k / rows), out[k], expected[m][k % rows], 0);
  }
}

void toolbox_fixsigns(td_context *context) {
  const Matrix a = {1, 1, 1, -10};
  const Ktensor k = ktensor(context, {2, 2}, 2, {a, a});
  check(td_ktensor_arrange(k));
  check(td_ktensor_fixsigns(k));
  const auto w = weights_of(k);
  // sqrt(101)^2 and sqrt(2)^2 are rounded three times each.
  expect_near("first weight", w[0], 101, 1e-12);
  expect_near("second weight", w[1], 2, 1e-13);
  Matrix out(4);
  for (std::int32_t m = 0; m < 2; ++m) {
    check(td_ktensor_get_factor(k, m, out.data(), 2, TD_HOST));
    expect_near("largest entry of the first column", out[1], 10 / std::sqrt(101), 1e-14);
    expect_near("the other one", out[0], -1 / std::sqrt(101), 1e-14);
  }
}

void ones_at_rank_two(td_context *context) {
  const Tensor x = dense(context, {2, 3, 4}, std::vector<double>(24, 1.0));
  const Fitted f = cpals(context, x, 2);
  // |X| = sqrt(24); a residual of 1e-8 of it is what cancellation leaves of an exact zero.
  expect_near("fit", fit_of(f), 1, 1e-7);
  const auto rank = get<std::int64_t>(td_report_get_i64, f.report, "effective_rank");
  expect_near("effective rank", static_cast<double>(rank), 1, 0);
  for (const double w : weights_of(f.model))
    if (!std::isfinite(w))
      throw Failure(exit_failed, fmt::format("a weight is {}", w));
}

void strassen(td_context *context) {
  // C = A B for 2 x 2 matrices, each stored by rows: one entry for each product a_ij b_jk that goes into c_ik.
  std::vector<Entry> products;
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 2; ++j)
      for (std::int64_t k = 0; k < 2; ++k)
        products.push_back({2 * i + j, 2 * j + k, 2 * i + k, 1});
  const Tensor x = sparse3(context, {4, 4, 4}, products);
  // Columns M1 .. M7: what is added of a11 a12 a21 a22, of b11 .. b22, and where the product goes in c11 .. c22.
  const Matrix a = {1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, -1, 0, 1, 0, 0, 1, 0, -1};
  const Matrix b = {1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, -1, -1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1};
  const Matrix c = {1, 0, 0, 1, 0, 0, 1, -1, 0, 1, 0, 1, 1, 0, 1, 0, -1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0};
  const Ktensor k = ktensor(context, {4, 4, 4}, 7, {a, b, c});
  double residual = -1;
  check(td_ktensor_fit(context, k, x, nullptr, nullptr, nullptr, &residual));
  expect_near("residual", residual, 0, 0);
}

std::vector<Entry> some_entries(std::uint64_t seed, std::array<std::int64_t, 3> d, std::uint64_t n) {
  std::vector<Entry> out;
  for (std::uint64_t k = 0; k < n; ++k)
    out.push_back({draw_index(d[0], 0, draw(seed, {0, k})), draw_index(d[1], 0, draw(seed, {1, k})),
                   draw_index(d[2], 0, draw(seed, {2, k})), draw(seed, {3, k}) - 0.5});
  return out;
}

std::vector<Matrix> some_factors(std::uint64_t seed, std::array<std::int64_t, 3> d, std::int64_t rank) {
  std::vector<Matrix> out;
  for (std::size_t m = 0; m < 3; ++m) {
    out.emplace_back(static_cast<std::size_t>(d[m] * rank));
    for (std::size_t k = 0; k < out[m].size(); ++k)
      out[m][k] = draw(seed, {m, k}) - 0.5;
  }
  return out;
}

// 200 terms below 1/16 each: sums are off by at most 200 * 200 / 16 * 2^-53 = 3e-13.
constexpr double sum_tolerance = 3e-13;

void mttkrp_identities(td_context *context) {
  const std::array<std::int64_t, 3> d = {7, 8, 9};
  const auto first = some_entries(1, d, 120), second = some_entries(2, d, 80);
  auto both = first;
  both.insert(both.end(), second.begin(), second.end());
  auto turned = both;
  std::reverse(turned.begin(), turned.end());
  const Tensor x1 = sparse3(context, d, first), x2 = sparse3(context, d, second), x = sparse3(context, d, both),
               xr = sparse3(context, d, turned);
  const auto u = some_factors(3, d, 5);
  double in_mode_0 = 0;
  for (std::int32_t m = 0; m < 3; ++m) {
    const Matrix all = mttkrp(context, x, m, 5, u), of1 = mttkrp(context, x1, m, 5, u),
                 of2 = mttkrp(context, x2, m, 5, u), reversed = mttkrp(context, xr, m, 5, u);
    double dot = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      dot += all[k] * u[static_cast<std::size_t>(m)][k];
      expect_near(fmt::format("X1 + X2, mode {}", m), of1[k] + of2[k], all[k], sum_tolerance);
      expect_near(fmt::format("entries in another order, mode {}", m), reversed[k], all[k], sum_tolerance);
    }
    in_mode_0 = m == 0 ? dot : in_mode_0;
    expect_near(fmt::format("<MTTKRP, U>, mode {}", m), dot, in_mode_0, 5 * sum_tolerance);
  }
}

void recovery(td_context *context) {
  Recipe recipe;
  recipe.dims = {12, 13, 14};
  recipe.rank = 3;
  recipe.dense = true;
  recipe.seed = 1;
  const Planted planted = plant(context, recipe);
  const Options options{{"tol", "1e-12"}, {"max_iters", "500"}, {"init", "nvecs"}};
  const Fitted f = cpals(context, planted.tensor, 3, options);
  expect_near("fit", fit_of(f), 1, 1e-5);
  double score = 0;
  check(td_ktensor_score(planted.truth, f.model, 1, &score, nullptr));
  expect_near("factor match score", score, 1, 1e-3);
}

} // namespace

const std::vector<Case> &selftest_cases() {
  static const std::vector<Case> cases = {
      {"a 2x3x4 tensor of rank 2, sparse and dense: weights 2.828427 and 2; a zero start is refused",
       "GenTen, test/Genten_Test_CpAls.cpp (Sandia National Laboratories)", genten_rank_two},
      {"MTTKRP of 1..720 in 2x3x4x5x6 with factors of ones, every mode",
       "pyttb, tests of tensor.mttkrp (Sandia National Laboratories)", pyttb_mttkrp},
      {"arrange and fixsigns: weights 101 and 2, largest entries positive",
       "Tensor Toolbox for MATLAB, documentation of ktensor fixsigns", toolbox_fixsigns},
      {"ones(2,3,4) at rank 2: fit 1 although the Gram matrix is singular, effective rank 1",
       "by hand: ones is of rank 1", ones_at_rank_two},
      {"2x2 matrix multiplication has rank 7: residual exactly 0",
       "V. Strassen, Gaussian elimination is not optimal, Numerische Mathematik 13, 1969", strassen},
      {"MTTKRP: <M, U> is one number for all modes, X = X1 + X2, order of entries",
       "T. G. Kolda and B. W. Bader, Tensor decompositions and applications, SIAM Review 51(3), 2009",
       mttkrp_identities},
      {"a planted ktensor of rank 3 is found again",
       "uniqueness: J. B. Kruskal, Linear Algebra and its Applications 18(2), 1977", recovery},
  };
  return cases;
}

} // namespace cli
