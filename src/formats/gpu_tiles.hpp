#pragma once

#include <span>
#include <vector>

#include "core/types.hpp"

namespace td::formats {

/// As tile_bits, for a copy that a GPU works on: tiles whose rows of the other factors fit a multiprocessor's shared
/// memory.
std::vector<int> gpu_tile_bits(std::span<const i64> dims, int mode, i64 nnz);

} // namespace td::formats
