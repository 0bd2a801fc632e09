// What one of several processes would have of a tensor that is not there: the boxes of tensor/entry_partition and the
// rows of tensor/distribution, predicted from sizes.
#pragma once

#include <span>
#include <vector>

#include "core/types.hpp"

namespace td::plan {

/// The mean over the processes; of whole numbers, too.
struct ProcessPart {
  int processes = 1;
  double entries = 0;           // of all
  std::vector<double> rows;     // that it holds, in each mode: those that its entries touch
  std::vector<double> lent;     // of these, those that others own
  std::vector<double> partners; // processes that it sends sums to, or rows
};

/// Entries are spread evenly, so that boxes with equally many entries are as large.
ProcessPart even_part(std::span<const i64> dims, i64 nnz, int processes);

} // namespace td::plan
