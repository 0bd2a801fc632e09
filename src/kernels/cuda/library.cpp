// The door of libtd_cuda; src/kernels/cuda_library.hpp says what it promises.
#include "kernels/cuda_library.hpp"

#include <algorithm>
#include <new>
#include <numeric>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "kernels/cuda/backend.hpp"

namespace td::kernels::cuda {

namespace {

// Kernels add f64 atomically and allocate in stream order; nothing older is compiled for.
constexpr int oldest_capability = 80;

int count_devices() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0)
    return count;
  cudaGetLastError();
  if (result == cudaErrorInsufficientDriver)
    throw_error(Status::backend_unavailable,
                "cuda: no NVIDIA driver, or one too old for CUDA {}.{}, which td was built with: {}",
                CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, cudaGetErrorString(result));
  if (result == cudaSuccess || result == cudaErrorNoDevice)
    throw_error(Status::backend_unavailable, "cuda: this machine has no NVIDIA GPU, or shows none to this process");
  throw_error(Status::backend_unavailable, "cuda: the GPUs of this machine do not answer{}: {}: {}",
              result == cudaErrorInitializationError ? ", as in a process that was forked from one that uses CUDA" : "",
              cudaGetErrorName(result), cudaGetErrorString(result));
}

std::shared_ptr<Backend> open_device(int ordinal, int repeat, int count, const DeviceSpec &spec) {
  if (ordinal >= count)
    throw_error(Status::backend_unavailable, "device cuda:{}: this machine has {} GPU{}, counted from 0", ordinal,
                count, count == 1 ? "" : "s");
  int major = 0;
  int minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), "asking what GPU it is");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal), "asking what GPU it is");
  if (10 * major + minor < oldest_capability)
    throw_error(Status::backend_unavailable, "device cuda:{} has compute capability {}.{}: expected {}.{} or newer",
                ordinal, major, minor, oldest_capability / 10, oldest_capability % 10);
  return std::make_shared<CudaBackend>(ordinal, repeat, spec);
}

/// A GPU's UUID, which differs between machines too, as a number other than 0.
i64 number_of(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "asking what GPU it is");
  u64 hash = 0xcbf29ce484222325; // FNV-1a
  for (const char c : properties.uuid.bytes)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<i64>(hash | 1);
}

/// Each worker has its part of the threads of all together.
int threads_of(int all, std::size_t worker, std::size_t workers) {
  const Range some = part_of({0, all}, static_cast<i64>(worker), static_cast<i64>(workers));
  return std::max(static_cast<int>(some.size()), 1);
}

/// Gives the number of GPUs.
int begin(std::string_view build) {
  if (build != TD_VERSION)
    throw_error(Status::backend_unavailable, "libtd_cuda is of version {}, libtd of {}: expected the same", TD_VERSION,
                build);
  if (Memory::is_forked())
    throw_error(Status::backend_unavailable,
                "cuda: this process was forked from one that uses CUDA, which does not work across a fork");
  return count_devices();
}

std::vector<std::shared_ptr<Backend>> open(const DeviceSpec &spec, int count) {
  DeviceSpec all = spec;
  if (all.devices.empty()) {
    all.devices.resize(static_cast<std::size_t>(count));
    std::iota(all.devices.begin(), all.devices.end(), 0);
  }
  const std::size_t workers = all.devices.size();
  std::vector<std::shared_ptr<Backend>> backends;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    DeviceSpec one = all;
    one.host_threads = threads_of(all.host_threads, worker, workers);
    backends.push_back(open_device(all.devices[worker], all.repeats_before(worker), count, one));
  }
  return backends;
}

} // namespace

} // namespace td::kernels::cuda

extern "C" __attribute__((visibility("default"))) std::int32_t
td_cuda_open(const char *build, const td::kernels::DeviceSpec *spec,
             std::vector<std::shared_ptr<td::kernels::Backend>> *out, std::vector<td::i64> *seen,
             std::string *why) noexcept {
  using td::Status;
  try {
    const int count = td::kernels::cuda::begin(build);
    for (int ordinal = 0; ordinal < count && seen != nullptr; ++ordinal)
      seen->push_back(td::kernels::cuda::number_of(ordinal));
    if (out != nullptr)
      *out = td::kernels::cuda::open(*spec, count);
    return 0;
  } catch (const td::Error &error) {
    *why = error.what();
    return static_cast<std::int32_t>(error.status());
  } catch (const std::bad_alloc &) {
    *why = "out of host memory"; // short enough to need none
    return static_cast<std::int32_t>(Status::host_memory);
  }
}
