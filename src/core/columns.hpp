// Columns of factor matrices read as f64 and brought into a range in which squares neither overflow nor vanish.
#pragma once

#include <span>
#include <vector>

#include "core/scaled.hpp"
#include "core/views.hpp"

namespace td {

/// A power of two for each column: column r is read as a[:, r] * 2^-exponent[r], which is exact.
struct ColumnScales {
  std::vector<i64> exponent;
  std::vector<double> factor; // 2^-exponent; 0 for a column of zeros
};

// Squares of numbers between 2^-200 and 2^200 keep their digits, with room for 2^63 rows.
inline constexpr int plain_exponent = 200;

/// Scales that bring the largest magnitude of each column into [1, 2); none where its exponent is within +-plain.
ColumnScales column_scales(ConstMatrix a, int plain = plain_exponent);

/// Sums of squares of the scaled columns: the diagonal of scaled_gram of a matrix with itself, bit for bit.
std::vector<double> scaled_squares(ConstMatrix a, const ColumnScales &scales);

/// Euclidean lengths of the scaled columns.
std::vector<double> scaled_norms(ConstMatrix a, const ColumnScales &scales);

/// g[r * b.cols + s] := sum over i of a[i, r] b[i, s], both scaled.
std::vector<double> scaled_gram(ConstMatrix a, const ColumnScales &sa, ConstMatrix b, const ColumnScales &sb);

} // namespace td
