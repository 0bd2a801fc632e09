#include <algorithm>
#include <limits>
#include <numeric>

#include "formats/coo.hpp"
#include "formats/key.hpp"
#include "formats/radix_sort.hpp"
#include "formats/row_order.hpp"
#include "formats/runs.hpp"
#include "formats/tiles.hpp"

namespace td::formats {

namespace {

constexpr i64 block = 512; // keys taken apart at a time

/// Sorts packed entries into s. `Key` is the type of packed keys, `Kept` that of keys without the sorted mode.
template <class Key, class Kept, class T> class Builder {
public:
  Builder(Sorted &s, const Packed &p, std::span<const int> bits_in_tile, int threads)
      : s_(s), p_(p), keys_(copy_keys(s, p.layout, bits_in_tile)), threads_(threads), n_(p.nnz()),
        packed_(p.keys_as<Key>()), values_(p.values.as<T>()), shift_(p.layout.shift[static_cast<std::size_t>(s.mode)]),
        width_(p.layout.bits[static_cast<std::size_t>(s.mode)]), tiles_(keys_.tiles) {}

  void run() {
    s_.keys = Buffer<std::byte>(n_ * static_cast<i64>(sizeof(Kept)), "keys sorted by mode");
    s_.values = ValueBuffer(p_.values.type(), n_, "values sorted by mode");
    const i64 places = tiles_ * s_.dims[static_cast<std::size_t>(s_.mode)];
    // A counter for each row and part is the fast way, as long as the counters take no more than a copy of the
    // entries would.
    const i64 most_parts = std::max(i64{1024}, 2 * n_) / places;
    const auto parts = static_cast<int>(std::clamp<i64>(most_parts, 1, parts_for(n_, threads_)));
    if (most_parts == 0 && tiles_ == 1)
      sort_rows();
    else if (n_ <= i64{std::numeric_limits<std::uint32_t>::max()})
      count_rows<std::uint32_t>(places, parts);
    else
      count_rows<i64>(places, parts);
    fill_tile_base(s_, keys_);
    if (tiles_ > 1)
      rows_.fill_loads(s_, rows_.fill_tile_light(s_).span());
  }

private:
  i64 row_of(Key key) const noexcept { return static_cast<i64>((key >> shift_) & low_bits<Key>(width_)); }

  // These go field by field over a block of keys: plain loops that the compiler turns into vectors.

  void places_of(const Key *keys, i64 count, i64 *places) const noexcept {
    for (i64 k = 0; k < count; ++k)
      places[k] = row_of(keys[k]);
    for (const kernels::TileField field : keys_.tile_fields) {
      const auto mask = low_bits<Key>(field.bits);
      const i64 stride = field.stride * dim();
      for (i64 k = 0; k < count; ++k)
        places[k] += static_cast<i64>((keys[k] >> field.shift) & mask) * stride;
    }
  }

  void kept_of(const Key *keys, i64 count, Kept *kept) const noexcept {
    std::fill_n(kept, count, Kept{0});
    for (const kernels::BitMove move : keys_.moves) {
      const auto mask = low_bits<Key>(move.count);
      for (i64 k = 0; k < count; ++k)
        kept[k] = static_cast<Kept>(kept[k] | (static_cast<Kept>((keys[k] >> move.from) & mask) << move.to));
    }
  }

  /// Calls body(first, count, places) for blocks of [r.begin, r.end).
  template <class Body> void for_blocks(Range r, Body &&body) const {
    std::array<i64, block> places;
    for (i64 begin = r.begin; begin < r.end; begin += block) {
      const i64 count = std::min(block, r.end - begin);
      places_of(packed_ + begin, count, places.data());
      body(begin, count, places.data());
    }
  }

  i64 dim() const noexcept { return s_.dims[static_cast<std::size_t>(s_.mode)]; }

  Kept *kept() const noexcept { return reinterpret_cast<Kept *>(s_.keys.data()); }

  /// There is one counting pass and one that moves. Canonical neighbours are near in every mode, so the places that are
  /// written to at a time are few, however many rows there are. Counters of 4 bytes, where these do, keep more of them
  /// near.
  template <class Counter> void count_rows(i64 places, int parts) {
    auto place = Buffer<Counter>::zeros(parts * places, "row counters");
    for_parts(n_, parts, [&](int part, Range r) {
      Counter *count = place.data() + part * places;
      for_blocks(r, [&](i64, i64 size, const i64 *places_of_block) {
        for (i64 k = 0; k < size; ++k)
          ++count[places_of_block[k]];
      });
    });
    if (tiles_ > 1)
      find_heavy_rows(place.data(), parts);
    list_rows(place.data(), places, parts);
    move_entries(place.data(), places, parts);
  }

  /// Lists rows in the order in which they are stored, tile by tile: where each begins, and how many are not empty.
  /// Each part's counts become the places of its first entries.
  template <class Counter> void list_rows(Counter *place, i64 places, int parts) {
    i64 rows = 0;
    Counter next = 0;
    Buffer<Counter> begins(places, "row boundaries");
    for (i64 tile = 0; tile < tiles_; ++tile) {
      rows_.each_row(dim(), [&](i64 at, i64 row) {
        const Counter begin = next;
        for (int part = 0; part < parts; ++part)
          next += std::exchange(place[part * places + tile * dim() + row], next);
        begins[tile * dim() + at] = begin;
        rows += next > begin ? 1 : 0;
      });
    }
    s_.row_index = Buffer<i64>(rows, "row indices");
    s_.row_begin = Buffer<i64>(rows + 1, "row boundaries");
    s_.tile_begin = Buffer<i64>(tiles_ + 1, "tile boundaries");
    rows = 0;
    for (i64 tile = 0; tile < tiles_; ++tile) {
      s_.tile_begin[tile] = rows;
      rows_.each_row(dim(), [&](i64 at, i64 row) {
        const i64 slot = tile * dim() + at;
        const auto begin = static_cast<i64>(begins[slot]);
        if (begin == (slot + 1 < places ? static_cast<i64>(begins[slot + 1]) : n_))
          return;
        s_.row_index[rows] = row;
        s_.row_begin[rows++] = begin;
      });
    }
    s_.row_begin[rows] = n_;
    s_.tile_begin[tiles_] = rows;
  }

  /// Where entries go is settled for a block before any is moved, so that the lines they go to come meanwhile.
  template <class Counter> void move_entries(Counter *place, i64 places, int parts) {
    Kept *keys = kept();
    T *values = s_.values.as<T>();
    for_parts(n_, parts, [&](int part, Range r) {
      Counter *at = place + part * places;
      std::array<Kept, block> kept;
      std::array<Counter, block> to;
      for_blocks(r, [&](i64 begin, i64 size, const i64 *places_of_block) {
        for (i64 k = 0; k < size; ++k)
          __builtin_prefetch(at + places_of_block[k], 1);
        kept_of(packed_ + begin, size, kept.data());
        for (i64 k = 0; k < size; ++k) {
          const Counter next_at = at[places_of_block[k]]++;
          to[static_cast<std::size_t>(k)] = next_at;
          __builtin_prefetch(keys + next_at, 1);
          __builtin_prefetch(values + next_at, 1);
        }
        for (i64 k = 0; k < size; ++k) {
          const auto there = static_cast<i64>(to[static_cast<std::size_t>(k)]);
          keys[there] = kept[static_cast<std::size_t>(k)];
          values[there] = values_[begin + k];
        }
      });
    });
  }

  void sort_rows() {
    Buffer<Key> keys(n_, "sorting keys");
    Buffer<Key> other_keys(n_, "sorting keys");
    ValueBuffer other_values(p_.values.type(), n_, "sorting values");
    T *values = s_.values.as<T>();
    parallel_ranges(threads_, n_, grain, [&](Range r) {
      std::copy(packed_ + r.begin, packed_ + r.end, keys.data() + r.begin);
      std::copy(values_ + r.begin, values_ + r.end, values + r.begin);
    });
    const Key row_bits = low_bits<Key>(width_) << shift_;
    RadixSort<Key, T>({keys.data(), values}, {other_keys.data(), other_values.as<T>()}, row_bits, threads_).run(n_);
    s_.row_begin = run_begins(n_, threads_, "row boundaries",
                              [&](i64 k) { return k == 0 || ((keys[k] ^ keys[k - 1]) & row_bits) != 0; });
    const i64 rows = s_.row_begin.size() - 1;
    s_.row_index = Buffer<i64>(rows, "row indices");
    for (i64 row = 0; row < rows; ++row)
      s_.row_index[row] = row_of(keys[s_.row_begin[row]]);
    s_.tile_begin = Buffer<i64>(2, "tile boundaries");
    s_.tile_begin[0] = 0;
    s_.tile_begin[1] = rows;
    Kept *out = kept();
    parallel_ranges(threads_, n_, grain, [&](Range r) { kept_of(keys.data() + r.begin, r.size(), out + r.begin); });
  }

  /// Finds, from the nonzeros of each part, tile and row, those of rows, and which rows are heavy.
  template <class Counter> void find_heavy_rows(const Counter *count, int parts) {
    auto of_rows = Buffer<i64>::zeros(dim(), "nonzeros of rows");
    for (i64 tile = 0; tile < parts * tiles_; ++tile)
      for (i64 row = 0; row < dim(); ++row)
        of_rows[row] += static_cast<i64>(count[tile * dim() + row]);
    rows_ = RowOrder(std::move(of_rows), n_);
  }

  Sorted &s_;
  const Packed &p_;
  CopyKeys keys_;
  int threads_;
  i64 n_;
  const Key *packed_;
  const T *values_;
  int shift_;
  int width_;
  i64 tiles_;
  RowOrder rows_; // with more than one tile
};

} // namespace

kernels::SortedView Sorted::view() const {
  const auto span_of = [](const Buffer<i64> &b) { return std::span(b.data(), static_cast<std::size_t>(b.size())); };
  return {dims,
          mode,
          values.size(),
          values.type(),
          layout,
          key_bytes,
          keys.data(),
          values.data(),
          row_index.size(),
          row_index.data(),
          row_begin.data(),
          tile_begin.size() - 1,
          tile_begin.data(),
          tile_base.data(),
          tile_light.data(),
          span_of(heavy_rows),
          span_of(heavy_cuts),
          span_of(light_cuts),
          {}};
}

i64 Sorted::bytes() const {
  return 8 * std::ssize(dims) + keys.bytes() + values.bytes() + row_index.bytes() + row_begin.bytes() +
         tile_begin.bytes() + tile_base.bytes() + tile_light.bytes() + heavy_rows.bytes() + heavy_cuts.bytes() +
         light_cuts.bytes();
}

SortedShape sorted_shape(std::span<const i64> dims, int mode, std::span<const int> bits) {
  const double tiles = tiles_of(dims, mode, bits);
  return {tiles, empty_sorted(dims, mode, bits).key_bytes};
}

double tile_load_bytes(double tiles) {
  const double cuts = std::min(static_cast<double>(heavy_loads), tiles) + 1 + static_cast<double>(light_loads) + 1;
  return tiles > 1 ? 8 * (tiles + cuts) : 0;
}

Sorted build_sorted(const Packed &p, int mode, std::span<const int> bits_in_tile, int threads) {
  Sorted s = empty_sorted(p.dims, mode, bits_in_tile);
  dispatch_key(p.key_bytes, [&](auto key) {
    dispatch_kept(s.key_bytes, [&](auto kept) {
      dispatch(p.values.type(), [&](auto zero) {
        Builder<decltype(key), decltype(kept), decltype(zero)>(s, p, bits_in_tile, threads).run();
      });
    });
  });
  return s;
}

OnDevice<Sorted> build_sorted(const PackedOnDevice &p, int mode, std::span<const int> bits_in_tile) {
  kernels::Building &building = *p.building;
  Sorted s = empty_sorted(p.dims, mode, bits_in_tile);
  const CopyKeys keys = copy_keys(s, p.layout, bits_in_tile);
  const auto m = static_cast<std::size_t>(mode);
  RowOrder rows;
  if (keys.tiles > 1) {
    Buffer<i64> count(p.dims[m], "nonzeros of rows");
    building.count_fields(p.layout.shift[m], p.layout.bits[m], count.span());
    rows = RowOrder(std::move(count), building.size());
  }
  kernels::Copy copy = building.make_copy({p.layout.shift[m], p.layout.bits[m], p.dims[m], keys.tiles, keys.tile_fields,
                                           rows.heavy_rows(), s.key_bytes, keys.moves});
  s.tile_begin = Buffer<i64>(keys.tiles + 1, "tile boundaries");
  std::copy(copy.tile_begin.begin(), copy.tile_begin.end(), s.tile_begin.data());
  fill_tile_base(s, keys);
  if (keys.tiles > 1) {
    s.tile_light = Buffer<i64>(keys.tiles, "where light rows begin");
    std::copy(copy.tile_light.begin(), copy.tile_light.end(), s.tile_light.data());
    rows.fill_loads(s, copy.heavy_entries);
  }
  kernels::SortedView view = s.view();
  view.nnz = building.size();
  view.type = p.type;
  view.rows = s.tile_begin[keys.tiles];
  return {std::move(s), std::move(copy.arrays), view};
}

Coo decode(const kernels::SortedView &s, int threads) {
  Coo coo = empty_coo(s.dims, s.type, s.nnz);
  i64 *rows = coo.indices[static_cast<std::size_t>(s.mode)].data();
  for (i64 row = 0; row < s.rows; ++row)
    std::fill(rows + s.row_begin[row], rows + s.row_begin[row + 1], s.row_index[row]);
  dispatch_kept(s.key_bytes, [&](auto zero) {
    using Key = decltype(zero);
    const auto *keys = static_cast<const Key *>(s.keys);
    for (i64 tile = 0; tile < s.tiles; ++tile) {
      const i64 *base = s.tile_base + tile * s.layout.order;
      const i64 begin = s.row_begin[s.tile_begin[tile]];
      parallel_ranges(threads, s.row_begin[s.tile_begin[tile + 1]] - begin, grain, [&](Range r) {
        for (int m = 0; m < s.layout.order; ++m)
          for (i64 k = begin + r.begin; k < begin + r.end && m != s.mode; ++k)
            coo.indices[static_cast<std::size_t>(m)][k] = field(s.layout, m, keys[k]) + base[m];
      });
    }
  });
  const std::vector<const void *> columns(coo.columns.begin(), coo.columns.end());
  const EntriesView by_rows{s.dims, s.nnz, IndexType::i64, columns.data(), 0, s.type, s.values};
  return build_canonical(by_rows, false, threads).coo;
}

} // namespace td::formats
