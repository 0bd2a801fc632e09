// This header moves matrices between callers, whose matrices are column-major and lie in host memory or a backend's,
// and workers. A caller's matrix is given as one of its columns: row r of it is column r.
#pragma once

#include <span>
#include <vector>

#include "solvers/replica.hpp"

namespace td::solvers {

/// to[k, r] := from[r, rows[k]]; with no rows: k itself. `there`: from is in the backend's memory(), else the host's.
void take_columns(kernels::Backend &backend, ConstMatrix from, bool there, std::span<const i64> rows, Matrix to);

/// to[r, rows[k]] := from[k, r]; the other elements of `to` are not written.
void give_columns(kernels::Backend &backend, ConstMatrix from, std::span<const i64> rows, Matrix to, bool there);

/// Finds in each of these matrices in the backend's memory the smallest i * cols + r at which it is not finite, rows *
/// cols where all of it is. The caller waits once for all of them.
std::vector<i64> first_not_finite(kernels::Backend &backend, std::span<const ConstMatrix> matrices);

} // namespace td::solvers
