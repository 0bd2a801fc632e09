// What td uses of NCCL 2, NVIDIA's library for GPUs that exchange, loaded when it is first asked for. It is declared as
// nccl.h has it, so that building needs none: results are 0 for success, communicators pointers, types numbers.
#pragma once

#include <cstddef>
#include <string>

#include <cuda_runtime_api.h>

#include "kernels/device.hpp"

namespace td::kernels::cuda {

inline constexpr const char *nccl_soname = "libnccl.so.2";

struct NcclId {
  char bytes[128];
};

/// ncclConfig_t as it began, in 2.14: newer versions take what it lacks to be undefined.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

struct NcclLibrary {
  int (*get_unique_id)(NcclId *id) = nullptr;
  int (*comm_init_rank_config)(void **comm, int size, NcclId id, int rank, NcclConfig *config) = nullptr;
  int (*comm_get_async_error)(void *comm, int *state) = nullptr;
  int (*comm_init_all)(void **comms, int count, const int *devices) = nullptr;
  int (*comm_destroy)(void *comm) = nullptr;
  int (*comm_abort)(void *comm) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void *from, std::size_t count, int type, int peer, void *comm, cudaStream_t stream) = nullptr;
  int (*receive)(void *to, std::size_t count, int type, int peer, void *comm, cudaStream_t stream) = nullptr;
  const char *(*error_string)(int result) = nullptr;
};

/// Null, with the reason, where it is not there.
const NcclLibrary *find_nccl(std::string &why);

/// What a call that is under way has for a result: ncclInProgress.
inline constexpr int nccl_in_progress = 7;
/// Whether NCCL has found no fault so far; a communicator that does not block says that it is at work.
inline bool is_fine(int result) { return result == 0 || result == nccl_in_progress; }

/// Asks for all that goes and comes, which stands between group_start and group_end.
int ask(const NcclLibrary &library, void *comm, cudaStream_t stream, const Transfers &sent, const Transfers &received);

} // namespace td::kernels::cuda
