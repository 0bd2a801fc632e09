// The numbers that an iteration leaves behind.
#pragma once

#include "core/buffer.hpp"
#include "kernels/backend.hpp"

namespace td::solvers {

/// The numbers stay in the backend's memory until they are asked for all at once: each time that the host asks for a
/// number, a device runs empty.
class Tally {
public:
  struct Numbers {
    kernels::SolveRecord *records = nullptr; // [solves]
    double *weights = nullptr;               // [solves][rank] of the model's columns
    double *scales = nullptr;                // [order][rank] that columns of stored factors are divided by
    double *inner = nullptr;                 // [rank] of the last MTTKRP's columns with the factor's
    double *model = nullptr;                 // [rank][rank] elementwise product of all Gram matrices
  };

  Tally(kernels::Backend &backend, std::size_t solves, std::size_t order, i64 rank);

  /// The numbers in the backend's memory.
  const Numbers &there() const noexcept { return there_; }
  /// The numbers in host memory, as of the last download.
  const Numbers &here() const noexcept { return here_; }
  /// These are as the backend's of these names.
  void begin_download();
  void end_download() { backend_.end_download(); }

private:
  kernels::Backend &backend_;
  Buffer<std::byte> copy_;
  kernels::DeviceBuffer memory_;
  Numbers here_;
  Numbers there_;
};

} // namespace td::solvers
