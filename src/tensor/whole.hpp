// A tensor that processes share, as a whole on each of them.
#pragma once

#include "tensor/tensor.hpp"

namespace td::tensor {

/// How the whole of a tensor is stored for sums whose order does not depend on how many processes there are: without
/// partial products, which all processes would have to send each other.
plan::TensorSettings settings_of_whole(const Tensor &x);

/// All of it, on each of the processes that share it, each of which gives the parts of its workers: the tensor that one
/// process alone would have made of the entries in the order of the workers. `processes` are those, not their workers,
/// and all of them call it. Of a tensor for GPUs it is that of `backend` which builds. Throws Status::host_memory where
/// it does not fit beside the parts.
std::shared_ptr<const Tensor> whole_of(std::span<const std::shared_ptr<const Tensor>> parts, Processes &processes,
                                       i64 memory_limit, kernels::Backend &backend, int threads);

/// The fibers of one mode of a tensor that processes share, each of them whole on one process.
struct Fibers {
  std::optional<formats::Coo> entries; // of a sparse tensor, as formats::build_fibers has them
  formats::Dense elements;             // of a dense one: a box
  bool empty = false;                  // none are here
};
/// All processes call it.
Fibers fibers_of(const Tensor &x, int mode, int threads);

} // namespace td::tensor
