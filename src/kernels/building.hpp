// What a device does of the building of a sparse tensor. How the steps make a format is said in formats/.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/views.hpp"

namespace td::kernels {

/// Bits [from, from + count) of one number go to [to, to + count) of another.
struct BitMove {
  int from = 0;
  int to = 0;
  int count = 0;
};

/// How many bits of a key the moves of all modes set at most.
inline int bits_set(std::span<const std::vector<BitMove>> moves) noexcept {
  int bits = 1;
  for (const auto &of_mode : moves)
    for (const BitMove &move : of_mode)
      bits = move.to + move.count > bits ? move.to + move.count : bits;
  return bits;
}

/// Keys of 8 or 16 bytes, by where the bits of an entry's row numbers go.
struct KeyMoves {
  int bytes = 8;
  std::vector<std::vector<BitMove>> moves; // [order]
};

/// Rows that are numbered: a bit for each row that has a number, and how many are before each word. Null: a row's
/// number is its index. On the host.
struct RowNumbers {
  const u64 *words = nullptr;
  const i64 *before = nullptr;
  i64 count = 0; // words
};

/// Arrays of a stored form that were made in a memory(), in the order in which the form's view tells them. They may
/// outlive the backend. From any thread.
class DeviceArrays {
public:
  struct Array {
    const void *data; // there
    i64 bytes;
  };
  virtual ~DeviceArrays() = default;
  virtual std::vector<Array> arrays() const = 0;
  /// Copies those for which there is a place on the host; null: not that one.
  virtual void download(std::span<void *const> to_host) const = 0;
};

/// The bits of packed keys that tell a copy's tiles apart in one mode: a tile's number grows by field * stride.
struct TileField {
  int shift = 0;
  int bits = 0;
  i64 stride = 0;
  int mode = 0;
};

/// A copy sorted by tiles, within a tile by rows, within a row in the order of the packed entries.
struct CopyPlan {
  int row_shift = 0; // where a packed key has the row
  int row_bits = 0;
  i64 dim = 0; // rows
  i64 tiles = 1;
  std::span<const TileField> tile_fields;
  std::span<const i64> heavy_rows; // ascending; a tile has them first, then the others
  int key_bytes = 8;               // of the copy: 4, 8 or 16
  std::span<const BitMove> kept;   // from a packed key to the copy's
};

/// The copy that a CopyPlan describes.
struct Copy {
  std::shared_ptr<const DeviceArrays> arrays; // keys, values, row_index, row_begin
  // On the host; of segments of rows as SortedView has them:
  std::vector<i64> tile_begin;    // [tiles + 1]
  std::vector<i64> tile_light;    // [tiles]
  std::vector<i64> heavy_entries; // [tiles] entries of a tile's heavy rows
};

/// What sum_values() finds in a block of values: sum and squares are of scale * value, the rest of the values as they
/// are.
struct ValueSums {
  double sum = 0;
  double squares = 0;
  double min = 0;
  double max = 0;
  i64 zeros = 0;

  /// Adds scale * value to the sums; min, max and zeros are those of values as they are.
  void add(double value, double scale) {
    const double y = value * scale;
    sum += y;
    squares += y * y;
    min = value < min ? value : min;
    max = value > max ? value : max;
    zeros += value == 0 ? 1 : 0;
  }
};

/// What Backend::sum_elements finds in a block of a dense tensor.
struct ElementSums {
  ValueSums sums;
  i64 not_finite = -1; // the first element, in the order of memory, that is not finite; -1: all are
  double value = 0;    // that one
};

/// Where the keys and values of entries are.
struct KeysAndValues {
  void *keys = nullptr;
  int key_bytes = 8;
  void *values = nullptr;
  ValueType type = ValueType::f64;

  void *key(i64 entry) const noexcept { return static_cast<char *>(keys) + entry * key_bytes; }
  void *value(i64 entry) const noexcept { return static_cast<char *>(values) + entry * size_of(type); }
};

/// Entries in a device's memory, on their way from a caller's coordinates to a stored form. The caller's arrays must be
/// there until the first function that gives something after sort(), or until this object's end. Functions that give
/// nothing may be under way when they return. Results are bit for bit the host's.
class Building {
public:
  virtual ~Building() = default;

  /// Entries now.
  virtual i64 size() const noexcept = 0;

  // These read coordinates, so they come before encode().

  /// The first entry with an index outside its dim, or -1; the first value that is not finite, or -1.
  virtual i64 first_outside() = 0;
  virtual i64 first_not_finite() = 0;
  /// Sets the bit of each row that has an entry in words[dim / 64 + 1], on the host.
  virtual void mark_rows(int mode, u64 *words) = 0;
  /// Gives each entry its key. numbers: [order].
  virtual void encode(const KeyMoves &keys, std::span<const RowNumbers> numbers) = 0;

  // These work on keys and values.

  /// Sorts by key; entries with the same key keep their order.
  virtual void sort() = 0;
  /// The first entry with the key of the one before it, or -1.
  virtual i64 first_repeat() = 0;
  /// Sums neighbours with the same key: in order, in f64, rounded once. Gives the first sum that is not finite, or -1.
  virtual i64 merge() = 0;
  /// Gives the keys of some entries.
  virtual std::vector<u128> keys(std::span<const i64> entries) = 0;
  /// Makes another key of each key.
  virtual void recode(int key_bytes, std::span<const BitMove> moves) = 0;
  /// The first entries of runs that agree in the bits of mask, then size().
  virtual std::vector<i64> runs(u128 mask) = 0;
  /// sums[b] := over the values [b * block, (b + 1) * block) of some entries, counted from the first of these, added
  /// one after the other.
  virtual void sum_values(double scale, i64 block, Range entries, ValueSums *sums) = 0;
  /// counts[field of the key] on the host := how many entries have it.
  virtual void count_fields(int shift, int bits, std::span<i64> counts) = 0;

  /// Makes a copy beside the entries.
  virtual Copy make_copy(const CopyPlan &plan) = 0;
  /// Keys and values, as they are. Nothing else can be asked afterwards.
  virtual std::shared_ptr<const DeviceArrays> take_entries() = 0;
};

class Dealt;

/// Entries in the memory of one device. By what it can do besides, several devices build together, each of some of the
/// entries.
class DeviceBuilding : public Building {
public:
  /// Where the entries are, from sort() on; of those that another gave, at once.
  virtual KeysAndValues here() = 0;
  /// Sorts by some bits of the key alone; entries that agree in them keep their order.
  virtual void sort_by(int shift, int bits) = 0;
  /// Does what sort() does where each [begin[k], begin[k + 1]) is sorted already: from 0 to size().
  virtual void merge_runs(std::span<const i64> begin) = 0;
  /// The first of sorted entries whose key, without its lowest bits, is `field` or greater; for each of several.
  virtual std::vector<i64> first_at(int shift, std::span<const i64> fields) = 0;
  /// Room for others of the same kind, so many. They are written to here(), which arrived() tells of.
  virtual std::unique_ptr<DeviceBuilding> beside(i64 size) = 0;
  virtual void arrived() = 0;
  /// A copy of those whose key has the field in one of some ranges, ascending, in their order.
  virtual std::unique_ptr<DeviceBuilding> with_fields(int shift, int bits, std::span<const Range> fields) = 0;
  /// Deals to owners those whose key has the field in a range that one of them has. No number is in two ranges; owned:
  /// [owners].
  virtual std::unique_ptr<Dealt> deal(int shift, int bits, std::span<const std::vector<Range>> owned) = 0;
};

/// Some of a device's entries by owners, one owner's behind the other's, each owner's in their order. The entries stay
/// as they are meanwhile.
class Dealt {
public:
  virtual ~Dealt() = default;
  Range of(std::size_t owner) const { return {begin_[owner], begin_[owner + 1]}; }
  /// Copies of all of some owners.
  virtual std::unique_ptr<DeviceBuilding> take(Range entries) = 0;
  /// Copies them to another's entry `first` and those behind it.
  virtual void take(Range entries, DeviceBuilding &to, i64 first) = 0;

protected:
  std::vector<i64> begin_; // [owners + 1]
};

} // namespace td::kernels
