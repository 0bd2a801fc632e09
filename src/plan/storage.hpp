// This header decides how a tensor is stored: it alone, for tensors and for plans of them, from sizes and settings.
#pragma once

#include <string>
#include <vector>

#include "core/memory.hpp"
#include "formats/footprint.hpp"
#include "plan/groups.hpp"
#include "plan/settings.hpp"

namespace td::plan {

/// This is what a decision is made from, besides the tensor.
struct StorageRequest {
  const TensorSettings &settings;
  int gpus = 0; // that take part; 0: it is for the CPU's kernels
  int threads = 1;
  HostRoom memory;
  kernels::Chip chip = {}; // of each GPU

  bool is_for_gpus() const noexcept { return gpus > 0; }
};

/// Why a tensor is stored as it is, a sentence each.
struct Reasons {
  std::string format;
  std::string rows; // with or without those that have no entry
  std::string groups;
  std::string tiles;
};

struct Storage {
  Format format = Format::coo;
  formats::TileRule tiles;
  std::vector<Group> partition; // of format sorted: a copy each, once decide_groups has been asked
  Reasons why;
};

/// The format of a sparse tensor whose rows are numbered as TensorSettings::numbers_rows says. By auto: a copy sorted
/// by each mode if these take at most a quarter of the memory, else BLCO; beyond formats::max_linear_bits, coordinates.
/// BLCO as well where it fits the memories of the GPUs and these copies would be streamed for longer than BLCO takes.
/// Coordinates keep their indices: then rows have no numbers of their own. Throws Status::unsupported for settings that
/// have no meaning for that format, and for a format that cannot hold these dims.
Storage decide_storage(const formats::EntryShape &numbered, const StorageRequest &request);

/// decide_groups says which modes of a tensor in format sorted share a partial product, and so a copy. It is a step of
/// its own since it goes by how many entries have the same indices of some modes: known once entries are sorted and
/// duplicates are summed, which the format decides about.
void decide_groups(Storage &storage, const formats::EntryShape &numbered, const StorageRequest &request);

/// A dense tensor has one form; its groups are those of Groups(dims, type, settings.groups_for(type)).
Storage dense_storage(int order, ValueType type, const StorageRequest &request);

/// footprint_of says what a format takes.
formats::Footprint footprint_of(Format format, const formats::EntryShape &x, const formats::TileRule &tiles,
                                int threads);

/// Throws Status::host_memory, with what would need less, if a tensor does not fit.
void require_storage(const Storage &storage, const formats::EntryShape &x, const StorageRequest &request);

/// Bytes that coordinates take which are decoded from a format: those that stay, and the most there are meanwhile.
struct Decoded {
  double kept = 0;
  double peak = 0;
};
Decoded decoded_bytes(Format format, const formats::EntryShape &x, int threads);

} // namespace td::plan
