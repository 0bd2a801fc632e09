// A choice of a GPU for each of several processes.
#pragma once

#include <vector>

#include "comm/processes.hpp"

namespace td {

/// What each process gets of the GPUs that it may have: in the order of the processes the first that none has, or where
/// `shared` allows several on one the first of those that fewest have. `may[k]` is a number that is a GPU's own; the
/// result is a place in it, or -1. All processes call it.
int choose_gpu(Processes &processes, const std::vector<i64> &may, bool shared);

} // namespace td
