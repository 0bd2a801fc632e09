// Host memory that GPUs copy from by themselves.
#pragma once

#include <memory>

#include "core/types.hpp"
#include "kernels/cuda/gpu.hpp"

namespace td::kernels::cuda {

/// Pins the whole pages of host memory while the result, or another one for the same pages, lives; null where that is
/// too little to gain by it, or the system does not let it be done: copies then go through the driver's own buffers.
/// Copies to `memory` come from there.
std::shared_ptr<const void> pin(Memory &memory, const void *host, i64 bytes);

/// How many bytes from `host` on, at most `bytes`, can be copied at once: none of them pinned here or all.
i64 alike(const void *host, i64 bytes);

} // namespace td::kernels::cuda
