#include "kernels/cuda/device.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "core/error.hpp"
#include "kernels/cuda/pinned.hpp"

namespace td::kernels::cuda {

namespace {

/// Whether CUDA found fault with the stream it was given; other errors may be of work that was started before.
bool is_about_stream(cudaError_t result) {
  switch (result) {
  case cudaErrorInvalidValue:
  case cudaErrorInvalidResourceHandle:
  case cudaErrorDeviceUninitialized: // its context is none, or one that has ended
  case cudaErrorContextIsDestroyed:
    return true;
  default:
    return result >= cudaErrorStreamCaptureUnsupported && result <= cudaErrorStreamCaptureWrongThread;
  }
}

/// Unless a caller's stream could be asked for how far it has come.
void check_stream(cudaError_t result, int ordinal) {
  if (!is_about_stream(result))
    return check(result, "asking the caller's stream how far it has come");
  cudaGetLastError();
  throw_error(Status::argument, "stream: expected a stream of cuda:{} that is not being captured into a graph: {}: {}",
              ordinal, cudaGetErrorName(result), cudaGetErrorString(result));
}

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

void *Memory::try_allocate(i64 bytes, const char *what, cudaStream_t stream) {
  void *memory = nullptr;
  const cudaError_t result = bytes < 0
                                 ? cudaErrorMemoryAllocation
                                 : cudaMallocFromPoolAsync(&memory, static_cast<std::size_t>(bytes), pool_, stream);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(result, what);
  return memory;
}

void *Memory::allocate(i64 bytes, const char *what, cudaStream_t stream) {
  if (bytes == 0)
    return nullptr;
  void *memory = try_allocate(bytes, what, stream);
  if (memory == nullptr && bytes > 0)
    for (const auto &keeper : keepers()) {
      keeper->give_back(this, bytes, false);
      memory = try_allocate(bytes, what, stream);
      if (memory != nullptr)
        break;
    }
  if (memory == nullptr)
    throw_error(Status::device_memory, "out of device memory: {} bytes for {}; {} are free", bytes, what, free_bytes());
  return memory;
}

void Memory::add_keeper(std::weak_ptr<Keeper> keeper) {
  const std::lock_guard lock(keepers_mutex_);
  std::erase_if(keepers_, [](const std::weak_ptr<Keeper> &k) { return k.expired(); });
  keepers_.push_back(std::move(keeper));
}

std::vector<std::shared_ptr<Keeper>> Memory::keepers() {
  const std::lock_guard lock(keepers_mutex_);
  std::vector<std::shared_ptr<Keeper>> there;
  for (const auto &keeper : keepers_)
    if (auto k = keeper.lock())
      there.push_back(std::move(k));
  return there;
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
  const CurrentDevice current(ordinal_, std::nothrow);
  if (memory == nullptr || !current)
    return;
  cudaDeviceSynchronize();
  cudaFreeAsync(memory, stream_);
  cudaStreamSynchronize(stream_); // so that a pool that is trimmed next has it
}

Device::Device(int ordinal, i64 limit) : memory_(Memory::of(ordinal)), kept_(std::make_shared<Kept>()) {
  kept_->limit = limit;
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
  const CurrentDevice current(ordinal(), std::nothrow);
  if (!current)
    return;
  cudaStreamSynchronize(stream_);
  if (copies_ != nullptr) {
    cudaStreamSynchronize(copies_);
    cudaStreamDestroy(copies_);
  }
  for (const Passing &buffer : passing_) {
    cudaEventDestroy(buffer.filled);
    cudaEventDestroy(buffer.used);
  }
  if (caller_ != nullptr)
    cudaEventDestroy(caller_);
  if (solver_ != nullptr)
    cusolverDnDestroy(solver_);
  for (cudaEvent_t moment : moments_)
    cudaEventDestroy(moment);
  cudaStreamDestroy(stream_);
  memory_.close();
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

std::shared_ptr<void> Device::keep(i64 bytes, const char *what) {
  if (bytes == 0)
    return kept_; // anything but null
  if (kept_->limit > 0 && bytes > kept_->limit - kept_->bytes)
    return nullptr;
  void *memory = memory_.try_allocate(bytes, what, stream_);
  if (memory == nullptr)
    return nullptr;
  kept_->bytes += bytes;
  return {memory, [&owner = memory_, kept = kept_, bytes](void *p) {
            owner.release(p);
            kept->bytes -= bytes;
          }};
}

// A sixteenth of the memory is left for factors, sums and what other programs take meanwhile.
i64 Device::room() const {
  const i64 free = memory_.free_bytes() - memory_bytes_ / 16;
  return kept_->limit > 0 ? std::min(kept_->limit - kept_->bytes, free) : free;
}

Device::Passing &Device::passing(int buffer) {
  if (copies_ == nullptr)
    check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "making a stream");
  while (static_cast<int>(passing_.size()) <= buffer) {
    Passing &next = passing_.emplace_back();
    check(cudaEventCreateWithFlags(&next.filled, cudaEventDisableTiming), "making an event");
    check(cudaEventCreateWithFlags(&next.used, cudaEventDisableTiming), "making an event");
  }
  return passing_[static_cast<std::size_t>(buffer)];
}

void Device::fetch(int buffer, void *to, const void *from_host, i64 bytes) {
  Passing &into = passing(buffer);
  check(cudaStreamWaitEvent(copies_, into.used, 0), "waiting for a buffer");
  cudaError_t result = cudaSuccess;
  for (i64 copied = 0; copied < bytes && result == cudaSuccess;) {
    const char *from = static_cast<const char *>(from_host) + copied;
    const i64 some = alike(from, bytes - copied);
    result = cudaMemcpyAsync(static_cast<char *>(to) + copied, from, static_cast<std::size_t>(some),
                             cudaMemcpyHostToDevice, copies_);
    copied += some;
  }
  check(cudaEventRecord(into.filled, copies_), "copying to the GPU"); // of what is under way also after an error
  check(result, "copying to the GPU");
}

void Device::await(int buffer) noexcept {
  if (buffer < static_cast<int>(passing_.size()))
    cudaStreamWaitEvent(stream_, passing_[static_cast<std::size_t>(buffer)].filled, 0);
}

void Device::done(int buffer) { check(cudaEventRecord(passing(buffer).used, stream_), "working on a buffer"); }

// Of a stream that is being captured the event would be part of the graph, and whoever waits for it, too.
cudaError_t Device::record_caller(cudaStream_t callers) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (const cudaError_t result = cudaStreamIsCapturing(callers, &capture); result != cudaSuccess)
    return result;
  return capture == cudaStreamCaptureStatusNone ? cudaEventRecord(caller_, callers) : cudaErrorStreamCaptureUnsupported;
}

void Device::follow(cudaStream_t callers) {
  if (callers != nullptr) {
    if (caller_ == nullptr)
      check(cudaEventCreateWithFlags(&caller_, cudaEventDisableTiming), "making an event");
    check_stream(record_caller(callers), ordinal());
  }
  callers_ = callers;
}

void Device::wait_for_caller() {
  if (callers_ == nullptr)
    return check(cudaDeviceSynchronize(), "waiting for the caller's work on the GPU");
  check_stream(record_caller(callers_), ordinal());
  check(cudaStreamWaitEvent(stream_, caller_, 0), "waiting for the caller's stream");
}

cusolverDnHandle_t Device::solver() {
  if (solver_ == nullptr) {
    check(cusolverDnCreate(&solver_), "starting cuSOLVER");
    check(cusolverDnSetStream(solver_, stream_), "starting cuSOLVER");
  }
  return solver_;
}

} // namespace td::kernels::cuda
