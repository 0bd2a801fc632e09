// Kernels that start before the one before them on the stream has ended: their blocks come to multiprocessors as these
// become free, and wait there until it has. So what a launch takes passes beside the kernel before it, some
// microseconds of each.
#pragma once

#include <algorithm>
#include <iterator>

#include "kernels/cuda/errors.hpp"
#include "kernels/cuda/gpu.hpp"

namespace td::kernels::cuda {

/// Each thread of a kernel that launch_early starts calls this before it touches memory: from there on all that came
/// before on the stream is done. A kernel that is started otherwise does not wait.
__device__ inline void await_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// From when all blocks have called this, or ended, the next kernel may start.
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Whether kernels on the GPU are of code that has the waiting: not if it was compiled for an older one.
inline bool waits_for_kernel_before(const Gpu &device) {
  constexpr int compiled_for[] = {__CUDA_ARCH_LIST__}; // 900 for 9.0
  return device.capability() >= 90 && std::find(std::begin(compiled_for), std::end(compiled_for),
                                                10 * device.capability()) != std::end(compiled_for);
}

/// Starts a kernel whose threads begin with await_kernel_before.
template <class... Parameters, class... Args>
void launch_early(const Gpu &device, void (*kernel)(Parameters...), dim3 blocks, unsigned threads, std::size_t shared,
                  const Args &...args) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = device.stream();
  config.attrs = &early;
  config.numAttrs = waits_for_kernel_before(device) ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(args)...), "starting a kernel");
}

} // namespace td::kernels::cuda
