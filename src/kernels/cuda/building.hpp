#pragma once

#include "kernels/building.hpp"
#include "kernels/cuda/staging.hpp"

namespace td::kernels::cuda {

/// Entries whose numbers take 4 bytes.
inline constexpr i64 most_built_entries = (i64{1} << 31) - 1;

/// What building takes at the worst moment: encoding, sorting keys, or making one copy; with some room for CUB.
/// `together` with other devices.
i64 bytes_to_build(const EntriesView &entries, bool together);

/// There are 1 to most_built_entries entries. keys: null where they are not known yet.
std::unique_ptr<DeviceBuilding> begin_building(Gpu &device, Staging &staging, const EntriesView &entries, bool together,
                                               const KeyMoves *keys);

} // namespace td::kernels::cuda
