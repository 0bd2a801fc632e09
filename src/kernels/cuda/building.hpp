#pragma once

#include "kernels/building.hpp"
#include "kernels/cuda/device.hpp"

namespace td::kernels::cuda {

/// As Backend::begin_building.
std::unique_ptr<Building> begin_building(Device &device, const EntriesView &entries);

} // namespace td::kernels::cuda
