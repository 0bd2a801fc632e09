// GPUs that exchange by NVIDIA's library: of one process, or one of each.
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

/// A process's end of what NCCL has connected: a GPU in each process. Whatever waits for the GPU on the host looks
/// whether NCCL works and the other processes have not failed, while a link is there: what one of them does not ask for
/// any more the others' GPUs would wait for without end.
class NcclEnd final : public Watch, public std::enable_shared_from_this<NcclEnd> {
public:
  /// All processes call it. Null for all, with a reason, where it cannot be for one.
  static std::shared_ptr<NcclEnd> make(Gpu &gpu, Peers &peers, std::string &why);
  NcclEnd(const NcclEnd &) = delete;
  NcclEnd &operator=(const NcclEnd &) = delete;
  ~NcclEnd() override;

  bool works() const noexcept { return comm_ != nullptr; }
  /// One at a time.
  std::unique_ptr<Link> link(Peers &peers);

  bool goes_on(bool is_long) override;
  [[noreturn]] void fail() override;

private:
  class Worker;
  NcclEnd(const NcclLibrary &library, Gpu &gpu);
  std::string connect(Peers &peers);
  std::string settle(Peers &peers, int result);
  void exchange(const Transfers &sent, const Transfers &received);
  int enqueue(const Transfers &sent, const Transfers &received);
  int state() const;
  void abort() noexcept;

  const NcclLibrary &library_;
  Gpu &gpu_;
  Memory &memory_; // which outlives the Gpu
  void *comm_ = nullptr;
  Peers *peers_ = nullptr; // while a link is there
  int failure_ = 0;        // of NCCL's
};

} // namespace td::kernels::cuda
