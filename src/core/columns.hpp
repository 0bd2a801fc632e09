// Columns of factor matrices read as f64 and brought into a range in which squares neither overflow nor vanish.
#pragma once

#include <span>
#include <vector>

#include "core/scaled.hpp"
#include "core/views.hpp"

namespace td {

/// A power of two for each column: column r is read as a[:, r] * 2^-exponent[r]. The scaling is exact, and it is
/// none at all for columns of usual magnitude.
struct ColumnScales {
  std::vector<i64> exponent;
  std::vector<double> factor; // 2^-exponent
};
ColumnScales column_scales(ConstMatrix a);

/// Euclidean lengths of the scaled columns.
std::vector<double> scaled_norms(ConstMatrix a, const ColumnScales &scales);

/// g[r * b.cols + s] := sum over i of a[i, r] b[i, s], both scaled.
std::vector<double> scaled_gram(ConstMatrix a, const ColumnScales &sa, ConstMatrix b, const ColumnScales &sb);

} // namespace td
