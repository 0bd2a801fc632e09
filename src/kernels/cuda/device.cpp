#include "kernels/cuda/device.hpp"

#include <cstdint>
#include <map>
#include <mutex>

#include "core/error.hpp"

namespace td::kernels::cuda {

namespace {

std::mutex &memories_mutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}

} // namespace

Memory &Memory::of(int ordinal) {
  static auto *all = new std::map<int, std::unique_ptr<Memory>>;
  const std::lock_guard lock(memories_mutex());
  auto &memory = (*all)[ordinal];
  if (!memory)
    memory.reset(new Memory(ordinal));
  return *memory;
}

Memory::Memory(int ordinal) : ordinal_(ordinal) {
  const CurrentDevice current(ordinal);
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = ordinal;
  check(cudaMemPoolCreate(&pool_, &properties), "making a memory pool on the GPU");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  std::uint64_t keep_all = ~std::uint64_t{0};
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all), "setting up a memory pool");
}

void Memory::open() {
  const std::lock_guard lock(memories_mutex());
  ++open_;
}

void Memory::close() noexcept {
  const std::lock_guard lock(memories_mutex());
  if (--open_ == 0)
    cudaMemPoolTrimTo(pool_, 0);
}

void *Memory::allocate(i64 bytes, const char *what, cudaStream_t stream) {
  if (bytes == 0)
    return nullptr;
  void *memory = nullptr;
  const cudaError_t result = bytes < 0
                                 ? cudaErrorMemoryAllocation
                                 : cudaMallocFromPoolAsync(&memory, static_cast<std::size_t>(bytes), pool_, stream);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw_error(Status::device_memory, "out of device memory: {} bytes for {}", bytes, what);
  }
  check(result, what);
  return memory;
}

i64 Memory::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  std::uint64_t kept = 0;
  std::uint64_t used = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &kept), "asking for free memory");
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), "asking for free memory");
  return static_cast<i64>(free + kept - used);
}

void Memory::release(void *memory) noexcept {
  int before = 0;
  if (memory == nullptr || cudaGetDevice(&before) != cudaSuccess)
    return;
  cudaSetDevice(ordinal_);
  cudaFreeAsync(memory, stream_);
  cudaStreamSynchronize(stream_); // so that a pool that is trimmed next has it
  cudaSetDevice(before);
}

Device::Device(int ordinal) : memory_(Memory::of(ordinal)) {
  const CurrentDevice current(ordinal);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "asking what GPU it is");
  name_ = properties.name;
  memory_bytes_ = static_cast<i64>(properties.totalGlobalMem);
  multiprocessors_ = properties.multiProcessorCount;
  capability_ = 10 * properties.major + properties.minor;
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  memory_.open();
}

Device::~Device() {
  int before = 0;
  if (cudaGetDevice(&before) != cudaSuccess) // the process is ending and CUDA with it
    return;
  cudaSetDevice(ordinal());
  cudaStreamSynchronize(stream_);
  if (solver_ != nullptr)
    cusolverDnDestroy(solver_);
  for (cudaEvent_t moment : moments_)
    cudaEventDestroy(moment);
  cudaStreamDestroy(stream_);
  memory_.close();
  cudaSetDevice(before);
}

i64 Device::free_bytes() const { return memory_.free_bytes(); }

void Device::release(void *memory) noexcept {
  if (memory != nullptr)
    cudaFreeAsync(memory, stream_);
}

// Waits: whoever uploads may change the source at once, and CUDA promises to have read it only where it is pageable.
void Device::upload(void *to, const void *from_host, i64 bytes) {
  if (bytes > 0)
    check(cudaMemcpyAsync(to, from_host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_),
          "copying to the GPU");
  wait();
}

void Device::download(void *to_host, const void *from, i64 bytes) {
  if (bytes > 0)
    check(cudaMemcpyAsync(to_host, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
          "copying from the GPU");
  wait();
}

void Device::mark(std::size_t moment) {
  while (moments_.size() <= moment) {
    cudaEvent_t next = nullptr;
    moments_.reserve(moments_.size() + 1);
    check(cudaEventCreate(&next), "making an event");
    moments_.push_back(next);
  }
  check(cudaEventRecord(moments_[moment], stream_), "recording an event");
}

double Device::seconds_between(std::size_t first, std::size_t second) {
  check(cudaEventSynchronize(moments_[first]), "waiting for the GPU");
  check(cudaEventSynchronize(moments_[second]), "waiting for the GPU");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, moments_[first], moments_[second]), "reading an event");
  return static_cast<double>(milliseconds) / 1e3;
}

cusolverDnHandle_t Device::solver() {
  if (solver_ == nullptr) {
    check(cusolverDnCreate(&solver_), "starting cuSOLVER");
    check(cusolverDnSetStream(solver_, stream_), "starting cuSOLVER");
  }
  return solver_;
}

} // namespace td::kernels::cuda
