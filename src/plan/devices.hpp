// What devices hold of a tensor, and what passes to them.
#pragma once

#include "plan/choices.hpp"

namespace td::plan {

/// Entries of the longest span that workers gather, of a dense tensor whole slabs.
i64 gathered_entries(const Layout &l);

/// Bytes of an entry of a form; of a sorted copy those of its value.
double entry_bytes(const Layout &l);

/// What GPUs keep of the tensor, of which they have `already` bytes of entries by now, as tensor/resident.cpp will have
/// it.
void place_on_devices(Plan &plan, const std::vector<i64> &already, const PlanRequest &request, Holding holding);

/// Bytes a second that come to a device as the parts of a streamed tensor do, measured; 0 where too little memory is
/// free for it: no copy of a tensor goes for a plan's sake.
double rate_of_fetching(kernels::Backend &backend);

/// What passes from the host passes beside the work: whichever takes longer. Of the copies of "sorted" each mode has
/// its own load; another format's one copy passes in every mode, and each GPU has a link of so many bytes a second.
void predict_streaming(Plan &plan, double link);

} // namespace td::plan
