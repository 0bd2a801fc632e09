// Between the border's column-major matrices and the rank-contiguous ones inside.
#pragma once

#include <optional>
#include <utility>

#include "core/views.hpp"

namespace td {

/// to[i, r] := from[i + r * ld]. Both are of to's type.
void from_column_major(const void *from, i64 ld, Matrix to);

/// to[i + r * ld] := from[i, r].
void to_column_major(ConstMatrix from, void *to, i64 ld);

/// Row and column of an entry that is NaN or infinite, if there is one.
std::optional<std::pair<i64, i64>> find_not_finite(ConstMatrix a);

} // namespace td
