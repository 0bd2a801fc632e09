#include "kernels/cuda/refuse.hpp"

#include <limits>

#include "core/error.hpp"

namespace td::kernels::cuda {

void refuse_rank(i64 rank) {
  if (rank > std::numeric_limits<int>::max() / 64)
    throw_error(Status::unsupported, "rank {} is more than cuSOLVER's 32-bit sizes can take", rank);
}

void refuse_unfolding(std::size_t format) {
  throw_error(Status::internal, "unfolding_normal takes a dense tensor or coordinates in fibers, not format {}",
              format);
}

void refuse_private_rows() {
  throw_error(Status::unsupported,
              "option 'conflicts' = \"private\": expected auto, atomic or owner for coordinates on "
              "a GPU; format blco has private rows there");
}

void refuse_reads(std::size_t reads, std::size_t most) {
  throw_error(Status::internal, "an exchange of {} reads: expected at most {}", reads, most);
}

} // namespace td::kernels::cuda
