// What a call into CUDA came to, as a Status and a sentence.
#pragma once

#include <cublas_api.h>
#include <cuda_runtime_api.h>
#include <cusolver_common.h>

namespace td::kernels::cuda {

/// Throws Status::device, or device_memory where that is what ran out, unless a call was successful; `what` says what
/// was tried: "copying to the GPU".
void check(cudaError_t result, const char *what);
void check(cusolverStatus_t result, const char *what);
void check(cublasStatus_t result, const char *what);

/// Stands after a kernel launch.
inline void check_launch(const char *what) { check(cudaGetLastError(), what); }

} // namespace td::kernels::cuda
