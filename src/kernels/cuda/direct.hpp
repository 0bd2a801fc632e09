// Exchanges between GPUs of one process by a kernel on each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/gpu.hpp"

namespace td::kernels::cuda {

/// What the ends of such a link share: flags on each GPU by which the kernels wait for each other.
class DirectClique : public std::enable_shared_from_this<DirectClique> {
public:
  /// Null where a GPU is named twice, since kernels that wait for each other need not run at the same time there, and
  /// for too many. The GPUs read each other's memories.
  static std::shared_ptr<DirectClique> make(const std::vector<Gpu *> &gpus);
  DirectClique(const DirectClique &) = delete;
  DirectClique &operator=(const DirectClique &) = delete;
  ~DirectClique();

  /// Whether it serves these GPUs still: not after an abort.
  bool is_of(const std::vector<Gpu *> &gpus) const noexcept;
  std::vector<std::unique_ptr<DirectLink>> links();

private:
  class End;
  struct Flags {
    explicit Flags(Memory &of) : memory(of) {}
    Flags(const Flags &) = delete;
    Flags &operator=(const Flags &) = delete;
    ~Flags();
    Memory &memory;
    std::uint32_t *data = nullptr;
  };

  explicit DirectClique(const std::vector<Gpu *> &gpus);
  void exchange(std::size_t rank, std::span<const DirectRead> reads);
  void abort() noexcept;

  std::vector<Gpu *> gpus_;
  std::vector<std::uint32_t> turns_; // exchanges so far, each counted by its worker
  std::vector<std::unique_ptr<Flags>> flags_;
  std::uint32_t *aborted_ = nullptr; // in pinned host memory
};

} // namespace td::kernels::cuda
