// Arrays that were built on a GPU, whoever holds them.
#pragma once

#include "kernels/building.hpp"
#include "kernels/cuda/gpu.hpp"

namespace td::kernels::cuda {

/// They count to what the device's context keeps.
class CudaArrays final : public DeviceArrays {
public:
  explicit CudaArrays(const Gpu &device) : memory_(device.memory()), resident_(device.resident()) {
    memories_.reserve(2); // so that taking one does not fail
  }
  CudaArrays(const CudaArrays &) = delete;
  CudaArrays &operator=(const CudaArrays &) = delete;
  ~CudaArrays() override;

  /// Memory of the device's, which now is this object's.
  void take(void *memory, i64 bytes);
  /// Lists an array that lies in such memory.
  void list(const void *data, i64 bytes) { arrays_.push_back({data, bytes}); }

  std::vector<Array> arrays() const override { return arrays_; }
  void download(std::span<void *const> to_host) const override;

private:
  Memory &memory_;
  std::shared_ptr<ResidentBytes> resident_;
  std::vector<Array> memories_;
  std::vector<Array> arrays_;
};

} // namespace td::kernels::cuda
