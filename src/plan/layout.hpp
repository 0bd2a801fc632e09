// How a tensor is stored, or would be: told of one that there is, of entries, or of a shape alone.
#pragma once

#include "core/entries.hpp"
#include "plan/needs.hpp"
#include "plan/tensor.hpp"

namespace td::plan {

/// Modes that share a partial product, or one that is alone.
struct GroupLayout {
  Group modes;
  i64 cells = 0;       // of several modes
  bool shared = false; // at the rank of the plan
};

struct Layout {
  std::vector<i64> dims;
  std::vector<i64> stored_dims; // rows that take part
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  bool sparse = true;
  bool exists = false; // the tensor is there
  Choice format, empty_rows, groups, tiles;
  std::vector<GroupLayout> partition;
  std::vector<formats::CopySize> copies; // of format sorted, one a group
  i64 blocks = 0;                        // of format blco
  formats::Footprint bytes;
  double cell_bytes = 0; // coordinates of cells that are made when they are first needed
  std::vector<std::string> assumptions;

  /// Where in the partition a mode is.
  std::size_t group_of(int mode) const;
};

/// What is common to all that a layout is made for.
struct LayoutRequest {
  const Options &options;
  i64 rank = 1;
  int threads = 1;
  HostMemory memory;
  bool gpu = false;
};

Layout layout_of(const Tensor &x, const LayoutRequest &request);
/// Of a sparse tensor whose entries are spread evenly.
Layout layout_of(std::span<const i64> dims, i64 nnz, ValueType type, const LayoutRequest &request);
/// Of a sparse tensor of these entries, which are looked at but not stored.
Layout layout_of(const EntriesView &entries, const LayoutRequest &request);
Layout dense_layout(std::span<const i64> dims, ValueType type, const LayoutRequest &request);

} // namespace td::plan
