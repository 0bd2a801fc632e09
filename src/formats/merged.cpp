#include "formats/merged.hpp"

#include <algorithm>
#include <array>

#include "formats/coo.hpp"
#include "formats/key.hpp"
#include "formats/parts.hpp"

namespace td::formats {

namespace {

constexpr i64 sample_size = i64{1} << 14;
constexpr i64 block = 512; // keys taken apart at a time

u64 hash(u64 key) noexcept {
  key ^= key >> 32;
  return key * 0x9e3779b97f4a7c15;
}
u64 hash(u128 key) noexcept { return hash(static_cast<u64>(key) ^ (static_cast<u64>(key >> 64) * 0xd6e8feb86659fd93)); }

template <class Key> i64 estimate(const Packed &p, std::span<const int> dropped, int threads) {
  Key mask = 0;
  for (int m = 0; m < p.layout.order; ++m) {
    const auto at = static_cast<std::size_t>(m);
    const int low = std::min<int>(dropped[at], p.layout.bits[at]);
    mask |= field_mask<Key>(p.layout, m) & ~(low_bits<Key>(low) << p.layout.shift[at]);
  }
  int drop = 0; // one cell in 2^drop is counted
  while ((p.nnz() >> drop) > sample_size)
    ++drop;
  const u64 limit = drop == 0 ? ~u64{0} : (u64{1} << (64 - drop)) - 1;
  const Key *keys = p.keys_as<Key>();
  const int parts = parts_for(p.nnz(), threads);
  std::vector<std::vector<Key>> picked(static_cast<std::size_t>(parts));
  for_parts(p.nnz(), parts, [&](int part, Range r) {
    auto &mine = picked[static_cast<std::size_t>(part)];
    for (i64 k = r.begin; k < r.end; ++k)
      if (hash(keys[k] & mask) <= limit)
        mine.push_back(keys[k] & mask);
  });
  std::vector<Key> all;
  for (const auto &some : picked)
    all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  return (std::unique(all.begin(), all.end()) - all.begin()) << drop;
}

/// Swaps two buffers for as long as it lives.
class Lend {
public:
  Lend(ValueBuffer &from, ValueBuffer &to) : from_(from), to_(to) { std::swap(from_, to_); }
  Lend(const Lend &) = delete;
  Lend &operator=(const Lend &) = delete;
  ~Lend() { std::swap(from_, to_); }

private:
  ValueBuffer &from_;
  ValueBuffer &to_;
};

int bits_of_modes(std::span<const i64> dims, std::span<const int> modes) {
  int bits = 0;
  for (const int m : modes)
    bits += index_bits(dims[static_cast<std::size_t>(m)]);
  return bits;
}

/// The modes' indices in one number, the first mode's lowest.
template <class Key> class CellOf {
public:
  CellOf(const Packed &p, std::span<const int> modes) : layout_(p.layout), modes_(modes) {}

  /// Makes the cells of a block of keys, mode by mode.
  void operator()(const Key *keys, i64 count, i64 *cells) const noexcept {
    std::fill_n(cells, count, i64{0});
    int at = 0;
    for (const int m : modes_) {
      const int shift = layout_.shift[static_cast<std::size_t>(m)];
      const Key mask = low_bits<Key>(bits_of(m));
      for (i64 k = 0; k < count; ++k)
        cells[k] |= static_cast<i64>((keys[k] >> shift) & mask) << at;
      at += bits_of(m);
    }
  }
  /// The index in the modes' k-th mode.
  i64 index(i64 cell, std::size_t k) const noexcept {
    int at = 0;
    for (std::size_t j = 0; j < k; ++j)
      at += bits(j);
    return (cell >> at) & ((i64{1} << bits(k)) - 1);
  }

private:
  int bits(std::size_t k) const noexcept { return bits_of(modes_[k]); }
  int bits_of(int mode) const noexcept { return layout_.bits[static_cast<std::size_t>(mode)]; }
  const kernels::KeyLayout &layout_;
  std::span<const int> modes_;
};

/// The nonempty cells, and the keys with the cell's number in place of the modes' indices.
template <class From, class To>
Coo merge_keys(const Packed &p, std::span<const int> modes, const Marks &marks, i64 count, std::span<const int> mode_at,
               Packed &merged, int threads) {
  const CellOf<From> cell_of(p, modes);
  const From *from = p.keys_as<From>();
  To *to = merged.keys_as<To>();
  const auto &layout = merged.layout;
  parallel_ranges(threads, p.nnz(), grain, [&](Range r) {
    std::array<i64, block> index;
    for (i64 begin = r.begin; begin < r.end; begin += block) {
      const i64 count = std::min(block, r.end - begin);
      std::fill_n(to + begin, count, To{0});
      for (std::size_t m = 0; m < mode_at.size(); ++m) {
        if (mode_at[m] < 0) {
          cell_of(from + begin, count, index.data());
          for (i64 k = 0; k < count; ++k)
            index[static_cast<std::size_t>(k)] = marks.place(index[static_cast<std::size_t>(k)]);
        } else {
          for (i64 k = 0; k < count; ++k)
            index[static_cast<std::size_t>(k)] = field(p.layout, mode_at[m], from[begin + k]);
        }
        const int shift = layout.shift[m];
        for (i64 k = 0; k < count; ++k)
          to[begin + k] |= static_cast<To>(index[static_cast<std::size_t>(k)]) << shift;
      }
    }
  });
  std::vector<i64> dims;
  for (const int m : modes)
    dims.push_back(p.dims[static_cast<std::size_t>(m)]);
  dims.push_back(count);
  Coo cells = empty_coo(dims, p.values.type(), count);
  marks.for_each(threads, [&](i64 place, i64 cell) {
    for (std::size_t m = 0; m < modes.size(); ++m)
      cells.indices[m][place] = cell_of.index(cell, m);
    cells.indices.back()[place] = place;
  });
  dispatch(p.values.type(),
           [&](auto zero) { std::fill_n(cells.values.as<decltype(zero)>(), count, decltype(zero){1}); });
  return cells;
}

} // namespace

bool can_merge(std::span<const i64> dims, i64 nnz, std::span<const int> modes) {
  const int bits = bits_of_modes(dims, modes);
  return bits < 62 && Marks::are_small(i64{1} << bits, nnz);
}

Combinations combinations_of(const Packed &p, int threads) {
  return [&p, threads](std::span<const int> dropped) {
    return static_cast<double>(
        dispatch_key(p.key_bytes, [&](auto key) { return estimate<decltype(key)>(p, dropped, threads); }));
  };
}

SortedCells build_sorted_cells(Packed &p, std::span<const int> modes, const TileRule &tiles, int threads) {
  Marks marks(i64{1} << bits_of_modes(p.dims, modes));
  dispatch_key(p.key_bytes, [&](auto zero) {
    using Key = decltype(zero);
    const CellOf<Key> cell_of(p, modes);
    const Key *keys = p.keys_as<Key>();
    parallel_ranges(threads, p.nnz(), grain, [&](Range r) {
      std::array<i64, block> cells;
      for (i64 begin = r.begin; begin < r.end; begin += block) {
        const i64 count = std::min(block, r.end - begin);
        cell_of(keys + begin, count, cells.data());
        for (i64 k = 0; k < count; ++k)
          marks.add(cells[static_cast<std::size_t>(k)]);
      }
    });
  });
  const i64 count = marks.settle();

  Packed merged;
  std::vector<int> mode_at; // -1: the merged mode
  int merged_mode = 0;
  for (int m = 0; m < p.layout.order; ++m) {
    const bool inside = std::find(modes.begin(), modes.end(), m) != modes.end();
    if (inside && m != modes.front())
      continue;
    if (inside)
      merged_mode = static_cast<int>(mode_at.size());
    mode_at.push_back(inside ? -1 : m);
    merged.dims.push_back(inside ? std::max<i64>(count, 1) : p.dims[static_cast<std::size_t>(m)]);
  }
  merged.layout = packed_layout(bits_of(merged.dims));
  merged.key_bytes = key_bytes_for(total_bits(merged.layout));
  merged.keys = Buffer<u64>(p.nnz() * (merged.key_bytes / 8), "keys with merged modes");
  SortedCells result;
  result.cells = dispatch_key(p.key_bytes, [&](auto from) {
    return dispatch_key(merged.key_bytes, [&](auto to) {
      return merge_keys<decltype(from), decltype(to)>(p, modes, marks, count, mode_at, merged, threads);
    });
  });
  const Lend values(p.values, merged.values);
  result.sorted = build_sorted(merged, merged_mode, tile_bits(tiles, merged.dims, merged_mode, merged.nnz()), threads);
  return result;
}

} // namespace td::formats
