// How numbers are stored: immutable once built, no algorithm on them. They are built from a caller's arrays without a
// coordinate copy in between.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/buffer.hpp"
#include "core/entries.hpp"
#include "formats/given.hpp"
#include "formats/numbering.hpp"
#include "kernels/building.hpp"

namespace td::formats {

struct Coo {
  std::vector<i64> dims;
  std::vector<Buffer<i64>> indices;
  std::vector<const i64 *> columns;
  ValueBuffer values;

  kernels::CooView view() const;
  i64 bytes() const;
};

struct Blco {
  std::vector<i64> dims;
  kernels::KeyLayout layout;
  Buffer<u64> keys;
  ValueBuffer values;
  Buffer<i64> block_begin;
  Buffer<i64> block_base;

  kernels::BlcoView view() const;
  i64 bytes() const;
};

struct Sorted {
  std::vector<i64> dims;
  int mode = 0;
  kernels::KeyLayout layout;
  int key_bytes = 8;
  Buffer<std::byte> keys;
  ValueBuffer values;
  Buffer<i64> row_index;
  Buffer<i64> row_begin;
  Buffer<i64> tile_begin;
  Buffer<i64> tile_base;
  Buffer<i64> tile_light;
  Buffer<i64> heavy_rows;
  Buffer<i64> heavy_cuts;
  Buffer<i64> light_cuts;

  kernels::SortedView view() const;
  i64 bytes() const;
};

/// Every element: in a copy, in which the first index runs fastest and there are no gaps; or lent by a caller, where it
/// lies.
struct Dense {
  std::vector<i64> dims;
  ValueBuffer values; // of lent ones nothing but the type
  const void *lent = nullptr;
  std::vector<i64> strides; // as a DenseView has them

  kernels::DenseView view() const;
  i64 bytes() const;
};

/// Most bits a linearized index may have; a tensor whose dims need more is stored as Coo.
inline constexpr int max_linear_bits = 128;

/// Bits of all modes' indices together.
int linear_bits(std::span<const i64> dims);

/// Throws Status::shape for an order outside min_order .. max_order or a dim below 1.
void check_dims(std::span<const i64> dims);

/// Checks a caller's entries: dims >= 1, order, indices in range, values finite. Throws Status::shape, index or
/// argument, naming entry, mode and coordinate in the caller's base.
void check_entries(const EntriesView &entries, int threads);
/// Checks entries that `building` has begun with in the same way; their shape has been checked.
void check_entries(const Given &entries, kernels::Building &building);
/// Makes those of the checks that need no look at the entries.
void check_shape(const EntriesView &entries);

/// Checked entries in canonical order: sorted by their interleaved (ALTO) index, entries at the same coordinates summed
/// in the order given, in f64 and rounded once, or, with refuse_duplicates, thrown as Status::index naming both. A sum
/// that overflows is Status::argument. Each keeps its indices in one packed key, a field of bits for each mode.
struct Packed {
  std::vector<i64> dims;
  kernels::KeyLayout layout;
  int key_bytes = 8;
  Buffer<u64> keys; // of 16-byte keys two words each
  ValueBuffer values;
  i64 duplicates = 0; // entries merged into others

  i64 nnz() const noexcept { return values.size(); }
  template <class Key> const Key *keys_as() const noexcept { return reinterpret_cast<const Key *>(keys.data()); }
  template <class Key> Key *keys_as() noexcept { return reinterpret_cast<Key *>(keys.data()); }
};

/// The dims need at most max_linear_bits. Indices are the rows' numbers, as in all that is built from them.
Packed build_packed(const EntriesView &entries, const Numbering &numbering, bool refuse_duplicates, int threads);

/// Packed entries in a device's memory. They are the same, bit for bit, as Packed on the host, and so is what is built
/// of them.
struct PackedOnDevice {
  kernels::Building *building = nullptr;
  std::vector<i64> dims;
  kernels::KeyLayout layout;
  int key_bytes = 8;
  ValueType type = ValueType::f64;
  i64 duplicates = 0;
};
/// The keys that build_packed will ask for, if they are known before any entry is: where no rows are numbered. The dims
/// need at most max_linear_bits.
std::optional<kernels::KeyMoves> known_keys(const EntriesView &entries, EmptyRows empty);
PackedOnDevice build_packed(kernels::Building &building, const Given &entries, const Numbering &numbering,
                            bool refuse_duplicates);
/// The entries stay in the order given, each by itself: the result is only to look at.
Packed pack_entries(const EntriesView &entries, const Numbering &numbering, int threads);
Coo unpack(const Packed &packed, int threads);

/// Entries as in Packed, in coordinates; beyond max_linear_bits the order is lexicographic, mode 0 first.
struct Canonical {
  Coo coo;
  i64 duplicates = 0; // entries merged into others
};
Canonical build_canonical(const EntriesView &entries, bool refuse_duplicates, int threads);

/// Numbers of rows become their indices, and dims those of the rows, in place.
void restore_indices(Coo &coo, const Numbering &numbering, std::span<const i64> dims, int threads);

/// What is known of a copy sorted by `mode` before it is built.
struct SortedShape {
  double tiles = 1;
  int key_bytes = 8;
};
SortedShape sorted_shape(std::span<const i64> dims, int mode, std::span<const int> bits_in_tile);
/// What a copy keeps to partition the work on its tiles, but for the heavy rows, which are few.
double tile_load_bytes(double tiles);

/// Both forms are built from packed entries. Within a row (of a tile) of a Sorted, entries keep that order.
Blco build_blco(Packed packed, int threads);
Sorted build_sorted(const Packed &packed, int mode, std::span<const int> bits_in_tile, int threads);

/// A form built on a device: the long arrays are in its memory, which the view lists first, and the others are on the
/// host.
template <class Form> struct OnDevice {
  Form rest;
  std::shared_ptr<const kernels::DeviceArrays> arrays;
  decltype(std::declval<const Form &>()
               .view()) view; // null: of `arrays`; valid while the rest is there or where it moves
};
/// Nothing else can be built of `packed` after a Blco.
OnDevice<Blco> build_blco(const PackedOnDevice &packed);
OnDevice<Sorted> build_sorted(const PackedOnDevice &packed, int mode, std::span<const int> bits_in_tile);

/// Entries are ordered so that those which differ only in `mode` are neighbours, as Backend::unfolding_normal wants
/// them.
Coo build_fibers(const kernels::CooView &canonical, int mode, int threads);

/// Copies the elements, first index fastest.
void copy_elements(const DenseArrayView &array, void *to, int threads);

/// Checks that values are finite and copies.
Dense build_dense(const DenseArrayView &array, int threads);

/// Takes an array as it lies. Throws Status::shape for strides below 1 or by which elements share a place or lie
/// between each other, Status::argument where it begins at an address at which no number of its type may be. Its
/// numbers are not looked at.
Dense lend_dense(const DenseArrayView &array);

/// Throws Status::argument naming element k of a view, counted in the order of memory: it is not finite.
[[noreturn]] void refuse_element(const kernels::DenseView &x, i64 k, double value);

/// Gives the coordinates back, in canonical order.
Coo decode(const kernels::BlcoView &blco, int threads);
Coo decode(const kernels::SortedView &sorted, int threads);

/// A block has at most so many nonzeros.
inline constexpr i64 max_block_nonzeros = i64{1} << 27;

} // namespace td::formats
