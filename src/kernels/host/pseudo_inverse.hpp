// The inverse of a small symmetric positive semidefinite matrix, or what comes nearest to one.
#pragma once

#include "kernels/kernels.hpp"

namespace td::kernels::host {

/// As Backend::pseudo_inverse.
SolveRecord pseudo_inverse(const double *v, i64 rank, double cutoff, double *p);

} // namespace td::kernels::host
