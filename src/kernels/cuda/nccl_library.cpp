#include "kernels/cuda/nccl_library.hpp"

#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/beside.hpp"

namespace td::kernels::cuda {

namespace {

constexpr int type_of_bytes = 1; // ncclUint8

const NcclLibrary *load_nccl(std::string &why) {
  std::string beside;
  std::string installed;
  void *library = load_beside(nccl_soname, beside);
  if (library == nullptr)
    library = load_installed(nccl_soname, installed);
  if (library == nullptr) {
    why = fmt::format("NCCL does not load: {}; {}", beside, installed);
    return nullptr;
  }
  static NcclLibrary nccl;
  const std::pair<const char *, void *> functions[] = {{"ncclCommInitAll", &nccl.comm_init_all},
                                                       {"ncclCommDestroy", &nccl.comm_destroy},
                                                       {"ncclCommAbort", &nccl.comm_abort},
                                                       {"ncclGroupStart", &nccl.group_start},
                                                       {"ncclGroupEnd", &nccl.group_end},
                                                       {"ncclSend", &nccl.send},
                                                       {"ncclRecv", &nccl.receive},
                                                       {"ncclGetErrorString", &nccl.error_string}};
  for (const auto &[name, place] : functions) {
    void *const found = dlsym(library, name);
    if (found == nullptr) {
      why = fmt::format("{} has no function {}: expected NCCL 2.7 or newer", nccl_soname, name);
      return nullptr;
    }
    *static_cast<void **>(place) = found;
  }
  // NCCL 2.7 need not have what only processes use.
  nccl.get_unique_id = reinterpret_cast<decltype(nccl.get_unique_id)>(dlsym(library, "ncclGetUniqueId"));
  nccl.comm_init_rank_config =
      reinterpret_cast<decltype(nccl.comm_init_rank_config)>(dlsym(library, "ncclCommInitRankConfig"));
  nccl.comm_get_async_error =
      reinterpret_cast<decltype(nccl.comm_get_async_error)>(dlsym(library, "ncclCommGetAsyncError"));
  return &nccl;
}

} // namespace

const NcclLibrary *find_nccl(std::string &why) {
  static std::mutex mutex;
  static std::string reason;
  static const NcclLibrary *const found = [] {
    const std::lock_guard lock(mutex);
    return load_nccl(reason);
  }();
  why = reason;
  return found;
}

int ask(const NcclLibrary &library, void *comm, cudaStream_t stream, const Transfers &sent, const Transfers &received) {
  int result = 0;
  for (const Transfer &t : sent)
    if (is_fine(result))
      result = library.send(t.memory, static_cast<std::size_t>(t.bytes), type_of_bytes, t.worker, comm, stream);
  for (const Transfer &t : received)
    if (is_fine(result))
      result = library.receive(t.memory, static_cast<std::size_t>(t.bytes), type_of_bytes, t.worker, comm, stream);
  return result;
}

} // namespace td::kernels::cuda
