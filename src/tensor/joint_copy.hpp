// How devices that build together make a copy: who gets which of the entries of whom, and what comes of it.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "kernels/building.hpp"
#include "plan/partition.hpp"
#include "tensor/selection.hpp"

namespace td::tensor {

/// What the devices tell each other of their entries before they exchange them.
class CopyExchange {
public:
  CopyExchange(const kernels::CopyPlan &plan, const plan::Partition &partition);

  /// The device's part of the copy, with its lists of rows on the host too. All devices call it at the same time, each
  /// with the entries that it has; a part may be empty.
  kernels::Copy make_part(kernels::Backend &device, Communicator &others, kernels::DeviceBuilding &entries);

private:
  /// Neighbours in one tile among a device's entries of a row.
  struct Run {
    i64 tile = 0;
    Range entries;
  };
  /// What a device sends of its entries: of those of a worker's own rows, or of a row that is split.
  struct Source {
    std::vector<std::unique_ptr<kernels::DeviceBuilding>> rows;  // [workers]
    std::vector<std::unique_ptr<kernels::DeviceBuilding>> split; // [split rows], sorted by tile
  };
  struct Message {
    std::size_t device = 0;
    i64 split = -1; // number of a split row; none: a worker's own rows
    Range entries;  // of that source
  };
  using Messages = std::vector<Message>;

  Source select(kernels::DeviceBuilding &entries, std::size_t device);
  std::vector<Run> runs_of(kernels::DeviceBuilding &row) const;
  Messages messages_to(std::size_t worker) const;
  void add_split(std::size_t split, Range ordinals, Messages &to) const;

  const kernels::CopyPlan &plan_;
  const plan::Partition &partition_;
  std::vector<std::vector<i64>> counts_;            // [devices][workers] entries of own rows
  std::vector<std::vector<std::vector<Run>>> runs_; // [devices][split rows]
};

/// The lists of a copy of which each device has a part: rows stand in the order of one copy, and the entries of a split
/// row in the order of the devices.
kernels::Copy merged_lists(const std::vector<kernels::Copy> &parts, i64 tiles);

} // namespace td::tensor
