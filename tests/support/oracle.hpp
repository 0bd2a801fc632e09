// What the right numbers are: the definitions written out in extended precision, without td.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "support/problem.hpp"

namespace tdtest {

/// A column-major result with, for each element, what an error bound needs.
struct Bounded {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<long double> value;
  std::vector<long double> magnitude; // the same sum over absolute values
  std::vector<int64_t> roundings;     // most roundings that a term of the sum passes through
};

/// MTTKRP by its definition: out[i_n, r] = sum over entries of x * product over m != n of A_m[i_m, r].
Bounded oracle_mttkrp(const Entries &x, const Factors &factors, int mode);

/// Sum over r of weights[r] * product over m of A_m[i_m, r], for every cell, first index fastest (one column).
Bounded oracle_full(const Factors &factors, const std::vector<double> &weights);

/// Unit roundoff of TD_F32 or TD_F64.
double unit_roundoff(td_type type);

/// gamma_k = k u / (1 - k u) (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1): a sum of
/// products in which every term passes through at most k roundings, in whatever order, errs by at most
/// gamma_k * (sum of absolute values).
double gamma(int64_t k, td_type type);

/// Whether `came` is within the bound above of the oracle, element by element. `slack` multiplies the bound.
testing::AssertionResult within_bound(const std::vector<double> &came, const Bounded &expected, td_type type,
                                      double slack = 1);

} // namespace tdtest
