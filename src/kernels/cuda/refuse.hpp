// Refusals, in the words of the host's kernels.
#pragma once

#include <cstddef>

#include "core/types.hpp"

namespace td::kernels::cuda {

void refuse_rank(i64 rank);

/// The unfolding of a format that has no fibers.
[[noreturn]] void refuse_unfolding(std::size_t format);

/// Coordinates have no private rows on a GPU.
[[noreturn]] void refuse_private_rows();

/// More of one worker in one exchange than a kernel takes.
[[noreturn]] void refuse_reads(std::size_t reads, std::size_t most);

} // namespace td::kernels::cuda
