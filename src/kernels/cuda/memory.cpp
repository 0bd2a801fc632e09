#include "kernels/cuda/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include <dlfcn.h>
#include <sys/mman.h>

#include "core/error.hpp"
#include "kernels/cuda/gpu.hpp"

namespace td::kernels::cuda {

namespace {

/// A function of the driver's, which the runtime has loaded; null in a driver that is older than the function.
template <class F> F *of_driver(const char *name) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr)
    return nullptr;
  auto *function = reinterpret_cast<F *>(dlsym(driver, name));
  dlclose(driver); // the runtime holds it
  return function;
}

/// What the runtime has no name for. It loads the driver, and must have done so before the first use of this.
struct Driver {
  decltype(cuDevicePrimaryCtxRetain) *retain =
      of_driver<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain");
  decltype(cuDevicePrimaryCtxRelease) *release =
      of_driver<decltype(cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease_v2");
  decltype(cuCtxGetCurrent) *current = of_driver<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent");
  decltype(cuCtxPushCurrent) *push = of_driver<decltype(cuCtxPushCurrent)>("cuCtxPushCurrent_v2");
  decltype(cuCtxPopCurrent) *pop = of_driver<decltype(cuCtxPopCurrent)>("cuCtxPopCurrent_v2");
};

const Driver &driver() noexcept {
  static const Driver driver;
  return driver;
}

/// The driver's results are numbered as those of the runtime.
cudaError_t as_runtime(CUresult result) noexcept { return static_cast<cudaError_t>(result); }

/// The context of a GPU that the runtime works in, made if there is none. The runtime alone holds it, so that
/// cudaDeviceReset ends it.
cudaError_t context_of(int ordinal, CUcontext *context) noexcept {
  const cudaError_t result = cudaInitDevice(ordinal, 0, 0);
  if (result != cudaSuccess)
    return result;
  const CUresult retained = driver().retain(context, ordinal);
  if (retained == CUDA_SUCCESS)
    driver().release(ordinal);
  return as_runtime(retained);
}

CUresult id_of(CUcontext context, unsigned long long *id) noexcept {
  static auto *const ask = of_driver<decltype(cuCtxGetId)>("cuCtxGetId");
  *id = 0;
  return ask == nullptr ? CUDA_SUCCESS : ask(context, id);
}

} // namespace

CUresult CurrentDevice::begin(CUcontext context) noexcept {
  CUcontext before = nullptr;
  CUresult result = driver().current(&before);
  if (result == CUDA_SUCCESS && before != context) {
    result = driver().push(context);
    pushed_ = result == CUDA_SUCCESS;
  }
  there_ = result == CUDA_SUCCESS;
  if (there_) {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    cudaGetLastError(); // an error that the caller left unread would look like one of the next kernel's
  }
  return result;
}

CurrentDevice::CurrentDevice(CUcontext context) { check(as_runtime(begin(context)), "choosing a GPU"); }

CurrentDevice::CurrentDevice(CUcontext context, std::nothrow_t) noexcept { begin(context); }

CurrentDevice::~CurrentDevice() {
  if (!there_)
    return;
  cudaThreadExchangeStreamCaptureMode(&mode_);
  cudaGetLastError(); // an error that td has dealt with, or that a destructor met, is none of the caller's
  CUcontext context = nullptr;
  if (pushed_)
    driver().pop(&context);
}

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
  check(context_of(ordinal, &context_), "choosing a GPU");
  id_of(context_, &context_id_);
  const CurrentDevice current(context_);
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
    return CurrentDevice(context_);
  }
}

CurrentDevice Memory::enter(std::nothrow_t) const noexcept {
  return state() == State::usable ? CurrentDevice(context_, std::nothrow) : CurrentDevice(std::nothrow);
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
    CUcontext anew = nullptr;
    if (context_of(ordinal_, &anew) != cudaSuccess)
      return;
    if (const CurrentDevice again(anew, std::nothrow); again) {
      cudaFree(memory); // in no stream's order: there is none of that time
      cudaMemPoolTrimTo(pool_, 0);
    }
  }
}

} // namespace td::kernels::cuda
