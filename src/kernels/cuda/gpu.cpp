#include "kernels/cuda/gpu.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "kernels/cuda/pinned.hpp"

namespace td::kernels::cuda {

namespace {

/// The GPU whose waits look up; each thread has its own, as it alone may ask other processes.
thread_local Gpu *watched = nullptr;

bool is_about_capture(cudaError_t result) {
  return result >= cudaErrorStreamCaptureUnsupported && result <= cudaErrorStreamCaptureWrongThread;
}

/// Whether CUDA found fault with the stream it was given; other errors may be of work that was started before.
bool is_about_stream(cudaError_t result) {
  switch (result) {
  case cudaErrorInvalidValue:
  case cudaErrorInvalidResourceHandle:
  case cudaErrorDeviceUninitialized: // its context is none, or one that has ended
  case cudaErrorContextIsDestroyed:
    return true;
  default:
    return is_about_capture(result);
  }
}

/// Throws unless a caller's stream could be asked for how far it has come.
void check_stream(cudaError_t result, int ordinal) {
  if (!is_about_stream(result))
    return check(result, "asking the caller's stream how far it has come");
  cudaGetLastError();
  throw_error(Status::argument, "stream: expected a stream of cuda:{} that is not being captured into a graph: {}: {}",
              ordinal, cudaGetErrorName(result), cudaGetErrorString(result));
}

/// Copies between a GPU and host memory of which some may be pinned: CUDA refuses what is half so.
cudaError_t copy_alike(char *to, const char *from, const char *host, i64 bytes, cudaMemcpyKind kind,
                       cudaStream_t stream) {
  cudaError_t result = cudaSuccess;
  for (i64 copied = 0; copied < bytes && result == cudaSuccess;) {
    const i64 some = alike(host + copied, bytes - copied);
    result = cudaMemcpyAsync(to + copied, from + copied, static_cast<std::size_t>(some), kind, stream);
    copied += some;
  }
  return result;
}

/// Bytes a second: two transfers a cycle of the memory's clock, each as wide as its bus.
double memory_rate(int ordinal) {
  int kilohertz = 0;
  int bits = 0;
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, ordinal), "asking for the memory's clock");
  check(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, ordinal), "asking for the memory's width");
  const double rate = 2e3 * kilohertz * bits / 8;
  return rate > 0 ? rate : Chip().memory_rate; // some virtual GPUs do not say
}

} // namespace

Gpu::Gpu(Memory &memory, i64 limit) : memory_(memory), resident_(std::make_shared<ResidentBytes>()) {
  resident_->limit = limit;
  const CurrentDevice current = memory_.enter();
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal()), "asking what GPU it is");
  name_ = properties.name;
  memory_bytes_ = static_cast<i64>(properties.totalGlobalMem);
  const i64 usable = memory_bytes_ - memory_bytes_ / 16;
  chip_ = {properties.multiProcessorCount, static_cast<i64>(properties.sharedMemPerBlockOptin), properties.l2CacheSize,
           memory_rate(ordinal()), limit > 0 ? std::min(limit, usable) : usable};
  capability_ = 10 * properties.major + properties.minor;
  stream_ = memory_.open_stream();
}

Gpu::~Gpu() {
  const CurrentDevice current = memory_.enter(std::nothrow);
  if (!current)
    return;
  if (copies_ != nullptr)
    memory_.close(copies_);
  if (beside_ != nullptr)
    memory_.close(beside_);
  for (cudaEvent_t event : {forked_, joined_})
    if (event != nullptr)
      cudaEventDestroy(event);
  for (const Passing &buffer : passing_)
    for (cudaEvent_t event : {buffer.filled, buffer.used})
      if (event != nullptr)
        cudaEventDestroy(event);
  for (cudaEvent_t signal : signals_)
    if (signal != nullptr)
      cudaEventDestroy(signal);
  if (caller_ != nullptr)
    cudaEventDestroy(caller_);
  if (solver_ != nullptr)
    cusolverDnDestroy(solver_);
  if (blas_ != nullptr)
    cublasDestroy(blas_);
  for (cudaEvent_t moment : moments_)
    if (moment != nullptr)
      cudaEventDestroy(moment);
  memory_.close(stream_);
  if (arrived_ != nullptr)
    cudaEventDestroy(arrived_);
  cudaFreeHost(arrivals_); // nothing is copied there any more
}

i64 Gpu::free_bytes() const { return memory_.free_bytes(); }

// Evicting waits for streams.
void *Gpu::allocate(i64 bytes, const char *what) {
  if (watch_ != nullptr && bytes > 0) {
    if (void *memory = memory_.try_allocate(bytes, what, stream_))
      return memory;
    settle();
  }
  return memory_.allocate(bytes, what, stream_);
}

/// Gives cudaErrorNotReady where it never will be. The others are asked late and seldom: who asks waits until all have
/// come to where they can answer, and one of them may be in a call of CUDA's that waits for what this process is to
/// exchange next, such as the first of a kernel. Where one has failed nothing is urgent any more.
cudaError_t Gpu::poll(const std::function<cudaError_t()> &query) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds patience(2);
  auto next = Clock::now() + patience;
  for (;;) {
    const cudaError_t result = query();
    if (result != cudaErrorNotReady)
      return result;
    cudaGetLastError(); // it would look like an error of the next kernel's
    const bool is_long = Clock::now() > next;
    if (!watch_->goes_on(is_long))
      return cudaErrorNotReady;
    if (is_long)
      next = Clock::now() + patience;
    std::this_thread::yield();
  }
}

void Gpu::wait_until(const std::function<cudaError_t()> &query) {
  const cudaError_t result = poll(query);
  if (result == cudaErrorNotReady)
    watch_->fail();
  check(result, "waiting for the GPU");
}

void Gpu::watch(Watch *watch) noexcept {
  watch_ = watch;
  watched = watch == nullptr ? nullptr : this;
}

void Gpu::settle_watched() noexcept {
  if (watched == nullptr)
    return;
  for (const cudaStream_t stream : {watched->stream_, watched->beside_})
    if (stream != nullptr)
      watched->poll([&] { return cudaStreamQuery(stream); });
}

void Gpu::finish(cudaStream_t stream) {
  if (watch_ == nullptr)
    return check(cudaStreamSynchronize(stream), "waiting for the GPU");
  wait_until([&] { return cudaStreamQuery(stream); });
}

void Gpu::finish(cudaEvent_t event) {
  if (watch_ == nullptr)
    return check(cudaEventSynchronize(event), "waiting for the GPU");
  wait_until([&] { return cudaEventQuery(event); });
}

void Gpu::settle() {
  if (watch_ == nullptr)
    return;
  wait();
  if (beside_ != nullptr)
    finish(beside_);
}

void Gpu::release(void *memory) noexcept {
  if (memory == nullptr)
    return;
  if (const CurrentDevice current = memory_.enter(std::nothrow); current)
    cudaFreeAsync(memory, stream_);
  else
    memory_.release(memory);
}

// Waits: whoever uploads may change the source at once, and CUDA promises to have read it only where it is pageable.
void Gpu::upload(void *to, const void *from_host, i64 bytes) {
  settle(); // copies of memory that is not pinned wait within CUDA
  const auto *const from = static_cast<const char *>(from_host);
  check(copy_alike(static_cast<char *>(to), from, from, bytes, cudaMemcpyHostToDevice, stream_), "copying to the GPU");
  wait();
}

void Gpu::download(void *to_host, const void *from, i64 bytes) {
  settle();
  auto *const to = static_cast<char *>(to_host);
  check(copy_alike(to, static_cast<const char *>(from), to, bytes, cudaMemcpyDeviceToHost, stream_),
        "copying from the GPU");
  wait();
}

// Copies to memory that is not pinned wait for the work before them, whatever they are called.
bool Gpu::has_arrivals(i64 bytes) {
  constexpr i64 most = i64{1} << 20; // the numbers of an iteration of rank 300
  if (bytes <= arrivals_bytes_ || bytes > most)
    return bytes <= arrivals_bytes_;
  if (arrived_ == nullptr)
    check(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "making an event");
  settle(); // pinned memory is had and freed when a GPU has ended its work
  cudaFreeHost(std::exchange(arrivals_, nullptr));
  arrivals_bytes_ = 0;
  if (cudaMallocHost(&arrivals_, static_cast<std::size_t>(bytes)) == cudaSuccess)
    arrivals_bytes_ = bytes;
  else
    cudaGetLastError();
  return arrivals_bytes_ > 0;
}

void Gpu::begin_download(void *to_host, const void *from, i64 bytes) {
  arriving_to_ = nullptr; // a call that failed may have left one
  if (!has_arrivals(bytes))
    return download(to_host, from, bytes);
  check(cudaMemcpyAsync(arrivals_, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
        "copying from the GPU");
  check(cudaEventRecord(arrived_, stream_), "recording an event");
  arriving_to_ = to_host;
  arriving_bytes_ = bytes;
}

void Gpu::end_download() {
  if (arriving_to_ == nullptr)
    return;
  finish(arrived_);
  std::memcpy(std::exchange(arriving_to_, nullptr), arrivals_, static_cast<std::size_t>(arriving_bytes_));
}

void Gpu::mark(std::size_t moment) {
  if (moments_.size() <= moment)
    moments_.resize(moment + 1, nullptr);
  if (moments_[moment] == nullptr)
    check(cudaEventCreate(&moments_[moment]), "making an event");
  check(cudaEventRecord(moments_[moment], stream_), "recording an event");
}

double Gpu::seconds_between(std::size_t first, std::size_t second) {
  finish(moments_[first]);
  finish(moments_[second]);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, moments_[first], moments_[second]), "reading an event");
  return static_cast<double>(milliseconds) / 1e3;
}

std::shared_ptr<void> Gpu::keep(i64 bytes, const char *what) {
  if (bytes == 0)
    return resident_; // anything but null
  if (resident_->limit > 0 && bytes > resident_->limit - resident_->bytes)
    return nullptr;
  void *memory = memory_.try_allocate(bytes, what, stream_);
  if (memory == nullptr)
    return nullptr;
  resident_->bytes += bytes;
  return {memory, [&owner = memory_, resident = resident_, bytes](void *p) {
            owner.release(p);
            resident->bytes -= bytes;
          }};
}

// A sixteenth of the memory is left for factors, sums and what other programs take meanwhile.
i64 Gpu::room() const {
  const i64 free = memory_.free_bytes() - memory_bytes_ / 16;
  return resident_->limit > 0 ? std::min(resident_->limit - resident_->bytes, free) : free;
}

Gpu::Passing &Gpu::passing(int buffer) {
  if (copies_ == nullptr)
    copies_ = memory_.open_stream();
  const auto count = static_cast<std::size_t>(buffer) + 1;
  if (passing_.size() < count)
    passing_.resize(count);
  Passing &found = passing_[count - 1];
  for (cudaEvent_t *event : {&found.filled, &found.used})
    if (*event == nullptr)
      check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
  return found;
}

void Gpu::fetch(int buffer, void *to, const void *from_host, i64 bytes) {
  Passing &into = passing(buffer);
  check(cudaStreamWaitEvent(copies_, into.used, 0), "waiting for a buffer");
  const auto *const from = static_cast<const char *>(from_host);
  const cudaError_t result = copy_alike(static_cast<char *>(to), from, from, bytes, cudaMemcpyHostToDevice, copies_);
  check(cudaEventRecord(into.filled, copies_), "copying to the GPU"); // of what is under way also after an error
  check(result, "copying to the GPU");
}

// What is pinned in part would be refused, and goes row by row.
void Gpu::fetch_rows(int buffer, void *to, const void *from_host, i64 bytes, i64 rows, i64 pitch) {
  const i64 reach = (rows - 1) * pitch + bytes;
  if (alike(from_host, reach) < reach) {
    for (i64 row = 0; row < rows; ++row)
      fetch(buffer, static_cast<char *>(to) + row * bytes, static_cast<const char *>(from_host) + row * pitch, bytes);
    return;
  }
  Passing &into = passing(buffer);
  check(cudaStreamWaitEvent(copies_, into.used, 0), "waiting for a buffer");
  const auto size = [](i64 n) { return static_cast<std::size_t>(n); };
  const cudaError_t result = cudaMemcpy2DAsync(to, size(bytes), from_host, size(pitch), size(bytes), size(rows),
                                               cudaMemcpyHostToDevice, copies_);
  check(cudaEventRecord(into.filled, copies_), "copying to the GPU"); // of what is under way also after an error
  check(result, "copying to the GPU");
}

void Gpu::await(int buffer) noexcept {
  if (buffer < static_cast<int>(passing_.size()))
    cudaStreamWaitEvent(stream_, passing_[static_cast<std::size_t>(buffer)].filled, 0);
}

void Gpu::done(int buffer) { check(cudaEventRecord(passing(buffer).used, stream_), "working on a buffer"); }

// An event of a stream that is being captured would be part of the graph, and whoever waits for it, too.
cudaError_t Gpu::record_caller(cudaStream_t callers) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (const cudaError_t result = cudaStreamIsCapturing(callers, &capture); result != cudaSuccess)
    return result;
  return capture == cudaStreamCaptureStatusNone ? cudaEventRecord(caller_, callers) : cudaErrorStreamCaptureUnsupported;
}

void Gpu::follow(cudaStream_t callers) {
  if (callers != nullptr) {
    if (caller_ == nullptr)
      check(cudaEventCreateWithFlags(&caller_, cudaEventDisableTiming), "making an event");
    check_stream(record_caller(callers), ordinal());
  }
  callers_ = callers;
}

void Gpu::wait_for_caller() {
  if (callers_ == nullptr) {
    settle();
    const cudaError_t result = cudaDeviceSynchronize();
    if (!is_about_capture(result))
      return check(result, "waiting for the caller's work on the GPU");
    cudaGetLastError();
    throw_error(Status::argument,
                "a stream of cuda:{} is being captured into a graph, so that the caller's work there cannot be waited "
                "for: expected the stream that orders it (td_context_set_stream): {}",
                ordinal(), cudaGetErrorName(result));
  }
  check_stream(record_caller(callers_), ordinal());
  check(cudaStreamWaitEvent(stream_, caller_, 0), "waiting for the caller's stream");
}

void Gpu::raise(Signal signal) {
  cudaEvent_t &event = signals_[static_cast<int>(signal)];
  if (event == nullptr)
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  check(cudaEventRecord(event, exchange_stream()), "recording an event");
}

void Gpu::wait_for(const Gpu &other, Signal signal) {
  if (cudaEvent_t event = other.signals_[static_cast<int>(signal)]; event != nullptr)
    check(cudaStreamWaitEvent(exchange_stream(), event, 0), "waiting for another GPU");
}

void Gpu::copy_from(const Gpu &other, void *to, const void *from, i64 bytes) {
  const auto count = static_cast<std::size_t>(bytes);
  if (bytes == 0)
    return;
  check(other.ordinal() == ordinal()
            ? cudaMemcpyAsync(to, from, count, cudaMemcpyDeviceToDevice, exchange_stream())
            : cudaMemcpyPeerAsync(to, ordinal(), from, other.ordinal(), count, exchange_stream()),
        "copying from another GPU");
}

void Gpu::begin_beside() {
  if (beside_ == nullptr)
    beside_ = memory_.open_stream();
  for (cudaEvent_t *event : {&forked_, &joined_})
    if (*event == nullptr)
      check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
  check(cudaEventRecord(forked_, stream_), "recording an event");
  check(cudaStreamWaitEvent(beside_, forked_, 0), "beginning an exchange beside other work");
  is_beside_ = is_forked_ = true;
}

// Memory that is exchanged may be freed next, so where the streams cannot be ordered the host waits.
void Gpu::join_beside() noexcept {
  if (!std::exchange(is_forked_, false))
    return;
  if (cudaEventRecord(joined_, beside_) != cudaSuccess || cudaStreamWaitEvent(stream_, joined_, 0) != cudaSuccess)
    cudaStreamSynchronize(beside_);
}

cusolverDnHandle_t Gpu::solver() {
  if (solver_ == nullptr) {
    settle(); // it allocates by itself
    cusolverDnHandle_t solver = nullptr;
    check(cusolverDnCreate(&solver), "starting cuSOLVER");
    const cusolverStatus_t result = cusolverDnSetStream(solver, stream_);
    if (result != CUSOLVER_STATUS_SUCCESS)
      cusolverDnDestroy(solver); // with another stream its work would be in no order with ours
    check(result, "starting cuSOLVER");
    solver_ = solver;
  }
  return solver_;
}

cublasHandle_t Gpu::blas() {
  if (blas_ == nullptr) {
    settle();
    cublasHandle_t blas = nullptr;
    check(cublasCreate(&blas), "starting cuBLAS");
    const cublasStatus_t result = cublasSetStream(blas, stream_);
    if (result != CUBLAS_STATUS_SUCCESS)
      cublasDestroy(blas);
    check(result, "starting cuBLAS");
    blas_ = blas;
  }
  return blas_;
}

} // namespace td::kernels::cuda
