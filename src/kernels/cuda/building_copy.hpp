#pragma once

#include "kernels/building.hpp"
#include "kernels/cuda/staging.hpp"

namespace td::kernels::cuda {

/// Packed entries in the GPU's memory, in linearized order.
struct PackedOnGpu {
  const void *keys;
  int key_bytes; // 8 or 16
  const void *values;
  ValueType type;
  i64 size;
};

class Spares;

/// The copy and the lists that tell of it.
Copy make_sorted_copy(Spares &spares, Staging &staging, const PackedOnGpu &entries, const CopyPlan &plan);

} // namespace td::kernels::cuda
