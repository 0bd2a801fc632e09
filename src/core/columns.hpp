// Columns of factor matrices read as f64 and brought into a range in which squares neither overflow nor vanish.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/scaled.hpp"
#include "core/views.hpp"

namespace td {

/// What those who hold blocks of the rows of the same matrices call together, in the same order; each array becomes the
/// sum or the maximum of all of theirs. Empty: the rows are all here.
struct Meeting {
  std::function<void(std::span<double>)> sum, max;
  int threads = 1; // that work on the rows that are here; no bit depends on how many
};

/// A power of two for each column: column r is read as a[:, r] * 2^-exponent[r], which is exact.
struct ColumnScales {
  std::vector<i64> exponent;
  std::vector<double> factor; // 2^-exponent; 0 for a column of zeros
};

// Squares of numbers between 2^-200 and 2^200 keep their digits, with room for 2^63 rows.
inline constexpr int plain_exponent = 200;

/// Scales that bring the largest magnitude of each column into [1, 2); none where its exponent is within +-plain.
ColumnScales column_scales(ConstMatrix a, int plain = plain_exponent, const Meeting &others = {});

/// Sums of squares of the scaled columns: the diagonal of scaled_gram of a matrix with itself, bit for bit.
std::vector<double> scaled_squares(ConstMatrix a, const ColumnScales &scales, const Meeting &others = {});

/// Euclidean lengths of the scaled columns.
std::vector<double> scaled_norms(ConstMatrix a, const ColumnScales &scales, const Meeting &others = {});

/// g[r * b.cols + s] := sum over i of a[i, r] b[i, s], both scaled.
std::vector<double> scaled_gram(ConstMatrix a, const ColumnScales &sa, ConstMatrix b, const ColumnScales &sb,
                                const Meeting &others = {});

} // namespace td
