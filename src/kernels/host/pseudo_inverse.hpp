// The inverse of a small symmetric positive semidefinite matrix, or what comes nearest to one.
#pragma once

#include "kernels/kernels.hpp"

namespace td::kernels::host {

/// As Backend::pseudo_inverse. Throws Status::numerical if v is not finite or its pseudo-inverse overflows.
SolveRecord pseudo_inverse(const double *v, i64 rank, double cutoff, double *p);

} // namespace td::kernels::host
