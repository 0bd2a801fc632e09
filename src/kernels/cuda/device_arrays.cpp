#include "kernels/cuda/device_arrays.hpp"

#include "core/parallel.hpp"
#include "kernels/cuda/staging.hpp"

namespace td::kernels::cuda {

CudaArrays::~CudaArrays() {
  for (const Array &memory : memories_) {
    memory_.release(const_cast<void *>(memory.data));
    resident_->bytes -= memory.bytes;
  }
}

void CudaArrays::take(void *memory, i64 bytes) {
  memories_.push_back({memory, bytes});
  resident_->bytes += bytes;
}

// On a stream of its own: the context that built them may be at work in another thread, or gone.
void CudaArrays::download(std::span<void *const> to_host) const {
  const CurrentDevice current = memory_.enter();
  Gpu device(memory_);
  Staging staging(device, available_threads());
  for (std::size_t k = 0; k < to_host.size(); ++k)
    if (to_host[k] != nullptr)
      staging.download(to_host[k], arrays_[k].data, arrays_[k].bytes);
}

} // namespace td::kernels::cuda
