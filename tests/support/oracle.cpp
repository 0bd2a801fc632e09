#include "support/oracle.hpp"

#include <cmath>

namespace tdtest {

namespace {

std::size_t size(int64_t n) { return static_cast<std::size_t>(n); }

} // namespace

Bounded oracle_mttkrp(const Entries &x, const Factors &factors, int mode) {
  Bounded b;
  b.rows = x.dims[size(mode)];
  b.cols = factors.rank;
  b.value.assign(size(b.rows * b.cols), 0);
  b.magnitude = b.value;
  // A term is a product of an entry and N - 1 factor entries (N - 1 roundings), then at most as many additions as its
  // slice has entries; one more rounding if the sum was kept in a wider type.
  b.roundings.assign(b.value.size(), x.order());
  for (int64_t k = 0; k < x.nnz(); ++k) {
    const int64_t row = x.indices[size(mode)][size(k)];
    for (int64_t r = 0; r < b.cols; ++r) {
      long double term = x.values[size(k)];
      for (int m = 0; m < x.order(); ++m)
        if (m != mode)
          term *= factors.at(m, x.indices[size(m)][size(k)], r);
      const auto e = size(row + r * b.rows);
      b.value[e] += term;
      b.magnitude[e] += std::fabs(term);
      b.roundings[e] += 1;
    }
  }
  return b;
}

Bounded oracle_full(const Factors &factors, const std::vector<double> &weights) {
  Bounded b;
  b.cols = 1;
  b.rows = 1;
  for (const int64_t d : factors.dims)
    b.rows *= d;
  std::vector<int64_t> c(factors.dims.size(), 0);
  for (int64_t cell = 0; cell < b.rows; ++cell) {
    long double sum = 0, magnitude = 0;
    for (int64_t r = 0; r < factors.rank; ++r) {
      long double term = weights[size(r)];
      for (std::size_t m = 0; m < c.size(); ++m)
        term *= factors.at(static_cast<int>(m), c[m], r);
      sum += term;
      magnitude += std::fabs(term);
    }
    b.value.push_back(sum);
    b.magnitude.push_back(magnitude);
    b.roundings.push_back(static_cast<int64_t>(c.size()) + factors.rank + 1);
    for (std::size_t m = 0; m < c.size() && ++c[m] == factors.dims[m]; ++m)
      c[m] = 0;
  }
  return b;
}

double unit_roundoff(td_type type) { return type == TD_F32 ? 0x1p-24 : 0x1p-53; }

double gamma(int64_t k, td_type type) {
  const double ku = static_cast<double>(k) * unit_roundoff(type);
  return ku / (1 - ku);
}

testing::AssertionResult within_bound(const std::vector<double> &came, const Bounded &expected, td_type type,
                                      double slack) {
  if (came.size() != expected.value.size())
    return testing::AssertionFailure() << came.size() << " numbers came, expected " << expected.value.size();
  for (std::size_t e = 0; e < came.size(); ++e) {
    const long double error = std::fabs(came[e] - expected.value[e]);
    // The oracle's own error, with u = 2^-64, is below a thousandth of this.
    const long double bound = slack * gamma(expected.roundings[e], type) * expected.magnitude[e] * 1.001L;
    if (!(error <= bound))
      return testing::AssertionFailure() << "element (" << static_cast<int64_t>(e) % expected.rows << ", "
                                         << static_cast<int64_t>(e) / expected.rows << "): came " << came[e]
                                         << ", expected " << static_cast<double>(expected.value[e]) << ", error "
                                         << static_cast<double>(error) << " > bound " << static_cast<double>(bound);
  }
  return testing::AssertionSuccess();
}

} // namespace tdtest
