#include "kernels/cuda/refuse.hpp"

#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace td::kernels::cuda {

void refuse_not_finite(i64 at, i64 rank, double value) {
  if (at >= 0)
    throw_error(Status::numerical, "the normal-equation matrix has the value {} at ({}, {}): the factors overflowed",
                value, at / rank, at % rank);
}

void refuse_no_convergence(int info, i64 rank) {
  if (info != 0)
    throw_error(Status::numerical, "the eigen-decomposition of the {} x {} normal equations did not converge", rank,
                rank);
}

void refuse_overflow(double scale, int exponent, double largest) {
  if (!std::isfinite(std::ldexp(scale, exponent)))
    throw_error(Status::numerical, "the inverse of the normal equations overflows: their largest value is {}", largest);
}

void refuse_rank(i64 rank) {
  if (rank > std::numeric_limits<int>::max() / 64)
    throw_error(Status::unsupported, "rank {} is more than cuSOLVER's 32-bit sizes can take", rank);
}

void refuse_unfolding(std::size_t format) {
  throw_error(Status::internal, "unfolding_normal takes a dense tensor or coordinates in fibers, not format {}",
              format);
}

} // namespace td::kernels::cuda
