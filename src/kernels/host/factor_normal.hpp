// A factor of the pseudo-inverse of a small symmetric positive semidefinite matrix.
#pragma once

#include "kernels/kernels.hpp"

namespace td::kernels::host {

/// Does what Backend::factor_normal does.
SolveRecord factor_normal(const double *v, i64 rank, double cutoff, double *f);

} // namespace td::kernels::host
