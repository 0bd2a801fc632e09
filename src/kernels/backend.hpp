// A backend (reference, cpu, cuda): a device, the kernels on views of its memory, and what it prefers and predicts. The
// layers above know no more of it than this.
#pragma once

#include "kernels/device.hpp"
#include "kernels/kernels.hpp"
#include "kernels/tuning.hpp"

namespace td::kernels {

// They stand in kernels/building.hpp.
class DeviceBuilding;
struct KeyMoves;
class DeviceArrays;
struct ElementSums;

/// A row that is looked for among some slots of a sorted copy's lists, in which rows ascend.
struct RowQuery {
  Range slots;
  i64 row = 0;
};
/// The first slot that lists the row or a greater one, or the end of the slots; and the first entry there.
struct RowPlace {
  i64 slot = 0;
  i64 entry = 0;
};
constexpr RowPlace find_row(const i64 *row_index, const i64 *row_begin, const RowQuery &wanted) {
  Range left = wanted.slots;
  while (left.begin < left.end) {
    const i64 middle = left.begin + (left.end - left.begin) / 2;
    if (row_index[middle] < wanted.row)
      left.begin = middle + 1;
    else
      left.end = middle;
  }
  return {left.begin, row_begin[left.begin]};
}

class Backend : public Device, public Kernels, public Tuning {
public:
  /// Threads of the host that work for it.
  virtual int threads() const noexcept = 0;

  /// Takes a caller's entries, of checked dims, from the host's memory or this memory() to build a tensor of them here.
  /// Gives null where the host builds: on backends that work in its memory, and where there is too little memory.
  /// `together`: these are some of the entries, and other devices have the rest. `keys`, if they are known, are what
  /// encode() will be asked for, of rows' indices: a backend may give and sort them while entries are on their way.
  virtual std::unique_ptr<DeviceBuilding> begin_building(const EntriesView &entries, bool together,
                                                         const KeyMoves *keys);
  /// How much of what keep can give building takes besides copies that are made already; 0 where it takes other memory.
  virtual i64 room_to_build(const EntriesView &, bool /*together*/) const { return 0; }

  /// Gives a caller's dense array in this memory(), for as long as a tensor borrows it: download gives its elements in
  /// the order of memory and without gaps. Throws as borrow() does, and waits as it does.
  virtual std::shared_ptr<const DeviceArrays> lend(const DenseView &array, std::string_view name);
  /// sums[b] := over the elements [b * block, (b + 1) * block) in the order of memory, added one after the other.
  virtual void sum_elements(const DenseView &x, double scale, i64 block, ElementSums *sums);

  /// found[k] := find_row of wanted[k] in lists in this memory(). What is wanted and found is on the host.
  virtual void find_rows(const i64 *row_index, const i64 *row_begin, std::span<const RowQuery> wanted,
                         std::span<RowPlace> found);
};

} // namespace td::kernels
