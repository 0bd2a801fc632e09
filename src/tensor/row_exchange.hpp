// How the rows that a process holds come and go, in the memory of its device.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "tensor/distribution.hpp"

namespace td::tensor {

/// Matrices are without gaps, with a row for each number (Distribution).
class RowExchange {
public:
  /// References must live as long. The lists of rows go to a device that has memory of its own.
  RowExchange(const Distribution &rows, kernels::Backend &backend, Communicator &others);

  /// The rows that this process owns := sums of theirs on all processes, its own first, then in the order of these.
  void reduce(int mode, Matrix a) const;
  /// The rows that others own := theirs.
  void gather(int mode, Matrix a) const { gather(mode, a, {}); }
  /// The same, and numbers of all processes become one.
  void gather(int mode, Matrix a, std::span<const Reduced> sums) const;
  /// The rows of this process's block (tensor/row_blocks), on the host, := those of their owners; of rows that nobody
  /// holds, zeros.
  void settle(int mode, ConstMatrix held, Matrix block) const;
  /// The rows that are held here := those of blocks, which are on the host.
  void fetch(int mode, ConstMatrix block, Matrix held) const;

private:
  const i64 *shared_rows(int mode) const;

  const Distribution &rows_;
  kernels::Backend &backend_;
  Communicator &others_;
  std::vector<kernels::DeviceBuffer> lists_; // [order] of a device with memory of its own: the shared rows
};

} // namespace td::tensor
