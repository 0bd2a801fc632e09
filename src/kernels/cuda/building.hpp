#pragma once

#include "kernels/building.hpp"
#include "kernels/cuda/staging.hpp"

namespace td::kernels::cuda {

/// As Backend::begin_building.
std::unique_ptr<Building> begin_building(Device &device, Staging &staging, const EntriesView &entries);

} // namespace td::kernels::cuda
