// NVIDIA's library for GPUs that exchange, loaded when it is first asked for.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/gpu.hpp"

namespace td::kernels::cuda {

struct NcclLibrary;

/// GPUs that NCCL has connected. Making one takes long, and memory of each GPU's.
class NcclClique : public std::enable_shared_from_this<NcclClique> {
public:
  /// Null, with the reason, where there is no NCCL, or it does not connect these GPUs.
  static std::shared_ptr<NcclClique> make(const std::vector<Gpu *> &gpus, std::string &why);
  NcclClique(const NcclClique &) = delete;
  NcclClique &operator=(const NcclClique &) = delete;
  ~NcclClique();

  /// Whether it is of these, in this order, and works.
  bool is_of(const std::vector<Gpu *> &gpus) const;
  std::vector<std::unique_ptr<Link>> links();

private:
  class Worker;
  struct End {
    Gpu *gpu = nullptr;
    Memory *memory = nullptr; // which outlives the Gpu
    void *comm = nullptr;
    std::mutex mutex; // held while its worker asks for something, or another one ends it
  };
  NcclClique(const NcclLibrary &library, const std::vector<Gpu *> &gpus);
  void connect();
  void exchange(std::size_t rank, const Transfers &sent, const Transfers &received);
  int ask(End &end, const Transfers &sent, const Transfers &received) const;
  void fail(const std::string &why);

  const NcclLibrary &library_;
  std::vector<std::unique_ptr<End>> ends_;
  mutable std::mutex failure_mutex_;
  std::string failure_; // empty while it works
};

} // namespace td::kernels::cuda
