// Between callers' column-major matrices, in host memory or a backend's, and a worker's. A caller's matrix is given as
// one of its columns: row r of it is column r.
#pragma once

#include <span>

#include "solvers/replica.hpp"

namespace td::solvers {

/// to[k, r] := from[r, rows[k]]; with no rows: k itself. `there`: from is in the backend's memory(), else the host's.
void take_columns(kernels::Backend &backend, ConstMatrix from, bool there, std::span<const i64> rows, Matrix to);

/// to[r, rows[k]] := from[k, r]; the other elements of `to` are not written.
void give_columns(kernels::Backend &backend, ConstMatrix from, std::span<const i64> rows, Matrix to, bool there);

/// The smallest i * cols + r at which a matrix in the backend's memory is not finite; rows * cols where all is.
i64 first_not_finite(kernels::Backend &backend, ConstMatrix a);

} // namespace td::solvers
