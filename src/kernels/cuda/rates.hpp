// What a GPU can do, measured with loops like those of its kernels.
#pragma once

#include "kernels/cuda/gpu.hpp"
#include "kernels/tuning.hpp"

namespace td::kernels::cuda {

/// They are measured when first asked for, once a process and GPU; 0 where there is no memory to measure with.
Rates measured_rates(const Gpu &device);

} // namespace td::kernels::cuda
