// This header moves matrices between the border, where they are column-major, and the inside, where they are
// rank-contiguous. A column-major matrix is given as one of its columns, transposed: row r of it is column r, and ld is
// the border's.
#pragma once

#include <optional>
#include <utility>

#include "core/views.hpp"

namespace td {

/// to[k, r] := from[r, rows[k]] for k in some; rows null: k itself. Both are of one type.
void gather_transposed(const ConstMatrix &from, const i64 *rows, const Matrix &to, Range some);

/// to[r, rows[k]] := from[k, r] for k in some.
void scatter_transposed(const ConstMatrix &from, const i64 *rows, const Matrix &to, Range some);

void set_zero(const Matrix &a);

/// The smallest i * cols + r for which a[i, r] is NaN or infinite; rows * cols where all are finite.
i64 first_not_finite(const ConstMatrix &a, int threads);

} // namespace td
