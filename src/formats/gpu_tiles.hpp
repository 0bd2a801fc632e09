#pragma once

#include <span>
#include <vector>

#include "core/types.hpp"

namespace td::formats {

/// Does what tile_bits does for a copy that a GPU works on: tiles whose rows of the other factors fit a
/// multiprocessor's shared memory. `row_type` is that of the numbers in these rows, `term_type` of what is made of
/// them.
std::vector<int> gpu_tile_bits(std::span<const i64> dims, int mode, i64 nnz, ValueType row_type, ValueType term_type);

} // namespace td::formats
