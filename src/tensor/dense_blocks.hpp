// A dense tensor that processes bring in blocks, whatever these are, and of which each process then holds a box.
#pragma once

#include "formats/formats.hpp"
#include "tensor/distribution.hpp"

namespace td::tensor {

/// A part of a dense array: a range of the indices of each mode.
using Box = std::vector<Range>;

/// The box of each process: the longest mode is cut in two, and the halves again, in proportion to their processes.
/// Some may be empty where there are hardly more elements than processes. Mode `whole`, if there is one, is not cut.
std::vector<Box> cut_into_boxes(std::span<const i64> dims, int processes, int whole = -1);

/// The elements of this process, in the numbers of rows: of one without any the element 0 that stands for them.
struct ArrivedBox {
  std::shared_ptr<const Distribution> distribution;
  formats::Dense elements;
  bool empty = false;
};

/// What one process brings of a dense array: the elements from `offset` on; none where a dim of theirs is 0.
struct DenseBlock {
  std::vector<i64> offset;
  DenseArrayView elements;
};

/// Brings the elements to the processes that are to hold them. Each process calls it with its own block of one array.
/// Throws Status::shape unless each element of the array is in one block, Status::argument for one that is not finite.
ArrivedBox distribute(std::shared_ptr<Processes> processes, std::span<const i64> dims, const DenseBlock &given,
                      const MemoryBudget &budget, int threads);

/// The elements of to[p] come to each process p, where from[q] are those of each process q, finite ones: `mine` here,
/// first index fastest, and so are those that come. All processes call it.
formats::Dense bring(Processes &processes, const DenseArrayView &mine, const std::vector<Box> &from,
                     const std::vector<Box> &to, const MemoryBudget &budget, int threads);

i64 elements_of(const Box &box);

} // namespace td::tensor
