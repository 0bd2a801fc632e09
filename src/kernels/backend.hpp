// A backend (reference, cpu, cuda): a device, the kernels on views of its memory, and what it prefers and predicts. The
// layers above know no more of it than this.
#pragma once

#include "kernels/device.hpp"
#include "kernels/kernels.hpp"
#include "kernels/tuning.hpp"

namespace td::kernels {

class Building; // kernels/building.hpp

class Backend : public Device, public Kernels, public Tuning {
public:
  /// Threads of the host that work for it.
  virtual int threads() const noexcept = 0;

  /// Takes a caller's entries, of checked dims, from the host's memory or this memory() to build a tensor of them here.
  /// Gives null where the host builds: on backends that work in its memory, and where there is too little memory.
  virtual std::unique_ptr<Building> begin_building(const EntriesView &entries);
  /// How much of what keep can give building takes besides copies that are made already; 0 where it takes other memory.
  virtual i64 room_to_build(const EntriesView &) const { return 0; }
};

} // namespace td::kernels
