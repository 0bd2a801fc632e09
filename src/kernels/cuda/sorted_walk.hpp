// Starts the walk over a sorted copy with the kernel for its widths.
#pragma once

#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/sorted_kernel.cuh"
#include "kernels/cuda/sorted_layout.hpp"

namespace td::kernels::cuda {

/// Starts the walk for one pass, whose blocks have so many bytes of shared memory.
template <class Row, class Term>
void start_walk(Gpu &device, const SortedJob &job, const SortedLayout &layout, i64 shared);

extern template void start_walk<float, float>(Gpu &, const SortedJob &, const SortedLayout &, i64);
extern template void start_walk<double, double>(Gpu &, const SortedJob &, const SortedLayout &, i64);
extern template void start_walk<float, double>(Gpu &, const SortedJob &, const SortedLayout &, i64);

} // namespace td::kernels::cuda
