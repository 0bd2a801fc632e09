#include "kernels/cuda/gpu.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <sys/mman.h>

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

/// A function of the driver's, which the runtime has loaded; null in a driver that is older than the function.
template <class F> F *of_driver(const char *name) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr)
    return nullptr;
  auto *function = reinterpret_cast<F *>(dlsym(driver, name));
  dlclose(driver); // the runtime holds it
  return function;
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

CUresult id_of(CUcontext context, unsigned long long *id) noexcept {
  static auto *const ask = of_driver<decltype(cuCtxGetId)>("cuCtxGetId");
  *id = 0;
  return ask == nullptr ? CUDA_SUCCESS : ask(context, id);
}

} // namespace

// A page that the system clears in a forked process tells without asking the system, which every call of a backend
// would have to.
bool Memory::is_forked() noexcept {
  static const volatile char *const page = [] {
    constexpr std::size_t size = 4096; // the system takes a whole page
    static char never = 1;
    void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return &never;
    if (madvise(memory, size, MADV_WIPEONFORK) != 0) { // before Linux 4.14
      munmap(memory, size);
      return &never;
    }
    auto *const first = static_cast<char *>(memory);
    *first = 1;
    return first;
  }();
  return *page == 0;
}

Memory &Memory::of(int ordinal, int repeat) {
  static auto *mutex = new std::mutex;
  using Memories = std::vector<std::unique_ptr<Memory>>; // of which the last one is in use
  static auto *all = new std::map<std::pair<int, int>, Memories>;
  const std::lock_guard lock(*mutex);
  auto &memories = (*all)[{ordinal, repeat}];
  if (memories.empty() || memories.back()->state() != State::usable) {
    memories.reserve(memories.size() + 1);
    memories.emplace_back(new Memory(ordinal));
  }
  return *memories.back();
}

Memory::Memory(int ordinal) : ordinal_(ordinal) {
  is_forked(); // which takes its page now, before any fork
  const CurrentDevice current(ordinal);
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = ordinal;
  check(cudaMemPoolCreate(&pool_, &properties), "making a memory pool on the GPU");
  std::uint64_t keep_all = ~std::uint64_t{0};
  cudaError_t result = cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all);
  if (result == cudaSuccess)
    result = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  if (result != cudaSuccess)
    cudaMemPoolDestroy(pool_);
  check(result, "setting up a memory pool");
  if (auto *const ask = of_driver<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent"); ask != nullptr)
    ask(&context_); // making the stream has made one
  id_of(context_, &context_id_);
}

// Each call of a backend asks: it takes tens of nanoseconds.
Memory::State Memory::state() const noexcept {
  if (is_forked())
    return State::forked;
  unsigned long long id = 0;
  const CUresult result = id_of(context_, &id);
  const bool gone = result == CUDA_ERROR_CONTEXT_IS_DESTROYED || (result == CUDA_SUCCESS && id != context_id_);
  return gone ? State::reset : State::usable;
}

CurrentDevice Memory::enter() const {
  switch (state()) {
  case State::forked:
    throw_error(Status::device, "cuda:{}: made before this process was forked, and CUDA does not work across a fork",
                ordinal_);
  case State::reset:
    throw_error(Status::device,
                "cuda:{}: the GPU was reset (cudaDeviceReset) after this was made, and what was there is lost: make "
                "the context and its tensors again",
                ordinal_);
  default:
    return CurrentDevice(ordinal_);
  }
}

CurrentDevice Memory::enter(std::nothrow_t) const noexcept {
  return state() == State::usable ? CurrentDevice(ordinal_, std::nothrow) : CurrentDevice(std::nothrow);
}

cudaStream_t Memory::open_stream() {
  const std::lock_guard lock(streams_mutex_);
  streams_.reserve(streams_.size() + 1);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  streams_.push_back(stream);
  return stream;
}

void Memory::close(cudaStream_t stream) noexcept {
  cudaStreamSynchronize(stream);
  const std::lock_guard lock(streams_mutex_);
  std::erase(streams_, stream);
  cudaStreamDestroy(stream);
  if (streams_.empty())
    cudaMemPoolTrimTo(pool_, 0);
}

// Streams stay open meanwhile.
void Memory::wait() noexcept {
  Gpu::settle_watched();
  const std::lock_guard lock(streams_mutex_);
  for (const cudaStream_t stream : streams_)
    cudaStreamSynchronize(stream);
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
    for (const auto &evictable : evictables()) {
      evictable->evict(this, bytes, false);
      memory = try_allocate(bytes, what, stream);
      if (memory != nullptr)
        break;
    }
  if (memory == nullptr)
    throw_error(Status::device_memory, "out of device memory: {} bytes for {}; {} are free", bytes, what, free_bytes());
  return memory;
}

void Memory::add_evictable(std::weak_ptr<Evictable> evictable) {
  const std::lock_guard lock(evictables_mutex_);
  std::erase_if(evictables_, [](const std::weak_ptr<Evictable> &k) { return k.expired(); });
  evictables_.push_back(std::move(evictable));
}

// Peer access between GPUs is of no effect on pools, which have a setting of their own.
bool Memory::open_to(int ordinal) {
  if (ordinal == ordinal_)
    return true;
  const std::lock_guard lock(open_mutex_);
  if (std::find(open_to_.begin(), open_to_.end(), ordinal) != open_to_.end())
    return true;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, ordinal, ordinal_), "asking for a link between GPUs");
  if (can == 0)
    return false;
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = ordinal;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  if (cudaMemPoolSetAccess(pool_, &access, 1) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  open_to_.push_back(ordinal);
  return true;
}

std::vector<std::shared_ptr<Evictable>> Memory::evictables() {
  const std::lock_guard lock(evictables_mutex_);
  std::vector<std::shared_ptr<Evictable>> there;
  for (const auto &evictable : evictables_)
    if (auto k = evictable.lock())
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
  if (memory == nullptr)
    return;
  if (const CurrentDevice current = enter(std::nothrow); current) {
    wait();
    cudaFreeAsync(memory, stream_);
    cudaStreamSynchronize(stream_); // so that a pool that is trimmed next has it
  } else if (state() == State::reset) {
    if (const CurrentDevice again(ordinal_, std::nothrow); again) {
      cudaFree(memory); // in no stream's order: there is none of that time
      cudaMemPoolTrimTo(pool_, 0);
    }
  }
}

Gpu::Gpu(Memory &memory, i64 limit) : memory_(memory), kept_(std::make_shared<Kept>()) {
  kept_->limit = limit;
  const CurrentDevice current(ordinal());
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal()), "asking what GPU it is");
  name_ = properties.name;
  memory_bytes_ = static_cast<i64>(properties.totalGlobalMem);
  chip_ = {properties.multiProcessorCount, static_cast<i64>(properties.sharedMemPerBlockOptin), properties.l2CacheSize};
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
i64 Gpu::room() const {
  const i64 free = memory_.free_bytes() - memory_bytes_ / 16;
  return kept_->limit > 0 ? std::min(kept_->limit - kept_->bytes, free) : free;
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
