// This header decides which process gets which entries of a tensor that several have brought.
#pragma once

#include "comm/processes.hpp"
#include "core/buffer.hpp"
#include "core/views.hpp"

namespace td::tensor {

/// The process of each of the entries here, which have been checked. All processes call it with their own entries of
/// one tensor; entries at the same coordinates go to the same one, wherever they are.
///
/// This is recursive coordinate bisection (Berger and Bokhari 1987), of entries: all are cut in two by an index of the
/// mode that has most rows left, the halves are cut again, and so on, until each process has a box of the index space.
/// A box shares the rows of a mode only with those beside it in other modes, as in the medium-grained partition (Smith
/// and Karypis 2016), and its load of entries is the mean to within about a hundredth where coordinates allow it: a row
/// that has too many is cut by its indices in the next mode.
Buffer<std::int32_t> partition_entries(Processes &processes, const EntriesView &entries, int threads);

/// The same for so many processes that are not there: all entries are here.
Buffer<std::int32_t> partition_entries(int processes, const EntriesView &entries, int threads);

} // namespace td::tensor
