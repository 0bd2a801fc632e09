// Finds a backend by name. reference and cpu are part of libtd; cuda is its own library, loaded on demand.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.hpp"

namespace td::kernels {

/// What a context string such as "cuda:0,2" asks for.
struct DeviceSpec {
  enum class Kind { reference, cpu, cuda };
  Kind kind = Kind::cpu;
  int workers = 1;          // cpu: workers; cuda: GPUs, 0 for all
  std::vector<int> devices; // cuda: ordinals; empty: all
  int host_threads = 1;     // cuda: for what is done on the host, in all workers together
  i64 memory_limit = 0;     // cuda: bytes of a GPU's memory that Backend::keep and building may take; 0: what is free
  Exchange exchange = Exchange::automatic; // cuda: how several GPUs do it

  /// How often devices[0 .. worker) name the GPU of `worker`: a GPU that is named again is a virtual one, with a
  /// memory() of its own.
  int repeats_before(std::size_t worker) const noexcept {
    const auto own = devices.begin() + static_cast<std::ptrdiff_t>(worker);
    return static_cast<int>(std::count(devices.begin(), own, *own));
  }
};

/// Throws Status::argument for a string that is none of those td_context_create lists. "auto" gives the GPU if there is
/// one. `virtual_devices`: a GPU may be named several times.
DeviceSpec parse_devices(std::string_view text, bool virtual_devices = false);

/// One backend a worker. `threads`: CPU threads in all workers together, 0 for all available. Throws
/// Status::backend_unavailable with the reason.
std::vector<std::shared_ptr<Backend>> open_backends(const DeviceSpec &spec, int threads);

/// A number for each GPU that this process sees, in the order of their ordinals; of one GPU it is the same in all
/// processes. Throws Status::backend_unavailable with the reason.
std::vector<i64> list_gpus();

/// Whether libtd_cuda is found beside libtd and loads; `why` (may be null) says why not.
bool cuda_library_loads(std::string *why);

} // namespace td::kernels
