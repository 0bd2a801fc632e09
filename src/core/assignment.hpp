// The linear assignment problem.
#pragma once

#include <span>
#include <vector>

#include "core/types.hpp"

namespace td {

/// Matches each of `rows` rows to a different one of `cols` >= rows columns so that the sum of benefit[row * cols +
/// column] is largest (shortest augmenting paths, O(rows^2 cols)). Gives the column of each row.
std::vector<i64> best_assignment(std::span<const double> benefit, i64 rows, i64 cols);

} // namespace td
