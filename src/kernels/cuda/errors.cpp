#include "kernels/cuda/errors.hpp"

#include "core/error.hpp"

namespace td::kernels::cuda {

void check(cudaError_t result, const char *what) {
  if (result == cudaSuccess)
    return;
  cudaGetLastError(); // reported once, not again to whoever asks next
  if (result == cudaErrorMemoryAllocation)
    throw_error(Status::device_memory, "out of device memory: {}", what);
  throw_error(Status::device, "{}: {}: {}", what, cudaGetErrorName(result), cudaGetErrorString(result));
}

void check(cusolverStatus_t result, const char *what) {
  if (result == CUSOLVER_STATUS_SUCCESS)
    return;
  if (result == CUSOLVER_STATUS_ALLOC_FAILED)
    throw_error(Status::device_memory, "out of device memory: {}", what);
  throw_error(Status::device, "{}: cuSOLVER status {}", what, static_cast<int>(result));
}

void check(cublasStatus_t result, const char *what) {
  if (result == CUBLAS_STATUS_SUCCESS)
    return;
  if (result == CUBLAS_STATUS_ALLOC_FAILED)
    throw_error(Status::device_memory, "out of device memory: {}", what);
  throw_error(Status::device, "{}: cuBLAS status {}", what, static_cast<int>(result));
}

} // namespace td::kernels::cuda
