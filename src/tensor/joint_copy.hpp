// How devices that build together make a copy: who gets which of the entries of whom, and what comes of it.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "kernels/building.hpp"
#include "plan/partition.hpp"
#include "tensor/sharding.hpp"

namespace td::tensor {

/// Lists keys and values of some entries for an exchange with a worker.
void add_entries(kernels::Transfers &list, std::size_t worker, const kernels::KeysAndValues &at, Range entries);
/// Copies them within a device, to entry `first` and those behind it.
void copy_entries(kernels::Backend &device, const kernels::KeysAndValues &to, i64 first,
                  const kernels::KeysAndValues &from, Range entries);

/// A copy of which each device has a part: rows stand in the order of one copy, and the entries of a split row in the
/// order of the devices.
struct JoinedCopy {
  kernels::Copy lists; // without arrays
  Sharded sharded;
};

/// What the devices tell each other of their entries before they exchange them, and of their parts afterwards.
class CopyExchange {
public:
  CopyExchange(const kernels::CopyPlan &plan, plan::Partition partition);

  /// The device's part of the copy. All devices call it at the same time, each with the entries that it has; a part may
  /// be empty.
  kernels::Copy make_part(kernels::Backend &device, Communicator &others, kernels::DeviceBuilding &entries);

  /// What the parts are together, when all have been made.
  JoinedCopy join() const;

private:
  /// Neighbours in one tile among a device's entries of a row.
  struct Run {
    i64 tile = 0;
    Range entries;
  };
  /// What a device sends of its entries: of those of a worker's own rows, or of a row that is split.
  struct Source {
    std::unique_ptr<kernels::Dealt> dealt;                       // to workers
    std::unique_ptr<kernels::DeviceBuilding> rows;               // of those dealt, the other workers'
    std::vector<std::unique_ptr<kernels::DeviceBuilding>> split; // [split rows], sorted by tile
  };
  struct Message {
    std::size_t device = 0;
    i64 split = -1; // number of a split row; none: a worker's own rows
    Range entries;  // of that source
  };
  using Messages = std::vector<Message>;
  /// Rows that one worker has, or a row that several have.
  struct Stretch {
    Range rows;
    std::vector<int> workers;
    i64 split = -1; // number of a split row
  };
  /// Slots of a part's lists, and the entries of their rows.
  struct Found {
    Range slots, entries;
  };

  Source select(kernels::DeviceBuilding &entries, std::size_t device);
  std::vector<Run> runs_of(kernels::DeviceBuilding &row) const;
  Messages messages_to(std::size_t worker) const;
  void add_split(std::size_t split, Range ordinals, Messages &to) const;
  std::vector<Found> find_stretches(kernels::Backend &device, const kernels::Copy &part, int worker) const;

  const kernels::CopyPlan &plan_;
  plan::Partition partition_;
  std::vector<Stretch> stretches_;                  // of all rows, ascending
  std::vector<std::vector<Range>> own_;             // [devices][workers] entries of own rows, as they are dealt
  std::vector<std::vector<std::vector<Run>>> runs_; // [devices][split rows]
  // [workers] of each stretch that the worker has, for each tile's heavy rows and its light ones; none: no entries
  std::vector<std::vector<Found>> found_;
};

} // namespace td::tensor
