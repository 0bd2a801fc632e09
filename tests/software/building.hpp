// Building as it is defined: serial, in host memory. A GPU's steps are held against it, and devices in software build
// by it.
#pragma once

#include "kernels/building.hpp"
#include "kernels/reference/backend.hpp"

namespace td::software {

class BuildingBackend : public kernels::reference::ReferenceBackend {
public:
  std::unique_ptr<kernels::DeviceBuilding> begin_building(const EntriesView &entries, bool together,
                                                          const kernels::KeyMoves *keys) override;
  /// What becomes of arrays that were built.
  virtual std::shared_ptr<const kernels::DeviceArrays> built(std::shared_ptr<const kernels::DeviceArrays> arrays) {
    return arrays;
  }
};

} // namespace td::software
