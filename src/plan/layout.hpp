// The layout of a tensor says how it is stored, or would be: of one that there is, of entries, or of a shape alone.
#pragma once

#include "core/entries.hpp"
#include "plan/process_part.hpp"
#include "plan/storage.hpp"

namespace td::plan {

/// Modes that share a partial product, or one that is alone.
struct GroupLayout {
  Group modes;
  i64 cells = 0; // of several modes
  bool shared = false;
};

/// Rows of factors that one process exchanges with others in an update, of each mode; none: the tensor is one
/// process's. Where processes have several workers each of these exchanges as a process does, and `processes` counts
/// them.
struct SharedRows {
  int processes = 1;
  int having_blocks = 0;     // processes, where they have several workers: one of each has rows of the model besides
  int sharing = 1;           // workers of one process, where all of the tensor is on its host once for them
  i64 entries = 0;           // of all processes
  std::vector<i64> lent;     // rows that others own: sums go to them, and the rows come back
  std::vector<i64> shared;   // own rows, each as often as another process has it
  std::vector<i64> partners; // processes that have some of these rows

  int blocks() const noexcept { return having_blocks > 0 ? having_blocks : processes; }
};

struct Layout {
  std::vector<i64> dims;
  std::vector<i64> stored_dims; // rows that take part
  i64 nnz = 0;
  ValueType type = ValueType::f64;
  bool sparse = true;
  bool exists = false; // the tensor is there
  Format format = Format::coo;
  std::string rows;   // that take part, by mode; "all"
  std::string groups; // as in "0,1|2"
  std::string tiles;  // of each copy, as the groups stand; "none" where no copy is cut
  Reasons why;
  std::vector<GroupLayout> partition;
  std::vector<formats::CopySize> copies; // of format sorted, one a group
  i64 blocks = 0;                        // of format blco
  formats::Footprint bytes;
  // A dense tensor that is borrowed has these:
  double lent_bytes = 0;    // of the caller's array
  bool in_place = false;    // the kernels work on it where it lies; else on copies on GPUs
  std::vector<i64> strides; // of what the kernels work on, as a DenseView has them
  SharedRows shared;        // of a tensor that processes share
  double besides = 0;       // bytes of a process's part of one, on the host, while it has all of it for a run
  std::vector<std::string> assumptions;

  /// Finds a mode's place in the partition.
  std::size_t group_of(int mode) const;
  /// How many slabs a dense tensor has.
  i64 slabs() const;
  /// Whether each of several processes has all of the tensor, and is one of as many workers.
  bool is_whole_on_each() const noexcept { return shared.processes > 1 && shared.shared.empty(); }
};

/// Bytes of entries or elements on their way to a process that is to have all.
inline double whole_bytes(i64 nnz, int order, ValueType type, bool sparse) {
  return static_cast<double>(nnz) * (static_cast<double>(size_of(type)) + (sparse ? 8.0 * order : 0));
}

/// A tensor that there is, as far as its layout tells of it.
struct Existing {
  std::span<const i64> dims;
  std::span<const i64> stored_dims;
  i64 nnz = 0;
  i64 duplicates = 0;
  ValueType type = ValueType::f64;
  bool sparse = true;
  Format format = Format::coo;
  const Reasons &why;
  const Groups &groups;
  std::vector<kernels::TensorView> forms; // sizes of what is stored; of format sorted one a group
  i64 bytes = 0;
  i64 numbering_bytes = 0; // of these
  double lent_bytes = 0;   // as in Layout
  bool in_place = false;
  std::vector<i64> strides = {};
  SharedRows shared = {};
};

Layout layout_of(const Existing &x, int threads);
/// The layout of a sparse tensor whose entries are spread evenly.
Layout layout_of(std::span<const i64> dims, i64 nnz, ValueType type, const StorageRequest &request);
/// The layout of what a process has of a sparse tensor that several share: the mean.
Layout layout_of(std::span<const i64> dims, const ProcessPart &part, ValueType type, const StorageRequest &request);
/// The layout of a sparse tensor of these entries, which are looked at but not stored.
Layout layout_of(const EntriesView &entries, const StorageRequest &request);
Layout dense_layout(std::span<const i64> dims, ValueType type, const StorageRequest &request);

} // namespace td::plan
