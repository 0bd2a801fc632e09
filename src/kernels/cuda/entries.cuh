// How kernels read a tensor's entries, whatever the format: at(k) finds entry k, index(entry, m) its coordinates.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/memory_order.hpp"

namespace td::kernels::cuda {

template <class T> struct CooEntries {
  const i64 *indices[max_order];
  const T *values;
  int order;

  using Entry = i64;
  explicit CooEntries(const CooView &x)
      : values(static_cast<const T *>(x.values)), order(static_cast<int>(x.dims.size())) {
    std::copy_n(x.indices, order, indices);
  }
  __device__ Entry at(i64 k) const { return k; }
  __device__ i64 index(const Entry &k, int m) const { return indices[m][k]; }
};

/// Where a format keeps a mode's bits in its keys.
struct Fields {
  std::uint8_t shift[max_order];
  std::uint8_t bits[max_order];

  explicit Fields(const KeyLayout &layout) {
    std::copy(layout.shift.begin(), layout.shift.end(), shift);
    std::copy(layout.bits.begin(), layout.bits.end(), bits);
  }
  template <class Key> __device__ i64 operator()(Key key, int m) const {
    if (bits[m] == 0) // its shift may be as wide as the key
      return 0;
    return static_cast<i64>(static_cast<u64>(key >> shift[m]) & (~u64{0} >> (64 - bits[m])));
  }
};

template <class T> struct BlcoEntries {
  Fields fields;
  const u64 *keys;
  const T *values;
  i64 blocks;
  const i64 *block_begin;
  const i64 *block_base;
  int order;

  struct Entry {
    u64 key;
    const i64 *base;
  };
  explicit BlcoEntries(const BlcoView &x)
      : fields(x.layout), keys(x.keys), values(static_cast<const T *>(x.values)), blocks(x.blocks),
        block_begin(x.block_begin), block_base(x.block_base), order(static_cast<int>(x.dims.size())) {}
  __device__ Entry at(i64 k) const { return {keys[k], block_base + part_holding(block_begin, blocks, k) * order}; }
  __device__ i64 index(const Entry &entry, int m) const { return fields(entry.key, m) + entry.base[m]; }
};

template <class T, class Key> struct SortedEntries {
  Fields fields;
  const Key *keys;
  const T *values;
  i64 rows;
  const i64 *row_index;
  const i64 *row_begin;
  i64 tiles;
  const i64 *tile_begin;
  const i64 *tile_base;
  int order;
  int mode;

  struct Entry {
    Key key;
    const i64 *base;
    i64 row;
  };
  explicit SortedEntries(const SortedView &x)
      : fields(x.layout), keys(static_cast<const Key *>(x.keys)), values(static_cast<const T *>(x.values)),
        rows(x.rows), row_index(x.row_index), row_begin(x.row_begin), tiles(x.tiles), tile_begin(x.tile_begin),
        tile_base(x.tile_base), order(static_cast<int>(x.dims.size())), mode(x.mode) {}
  __device__ Entry at(i64 k) const {
    const i64 row = part_holding(row_begin, rows, k);
    return {keys[k], base_of(part_holding(tile_begin, tiles, row)), row_index[row]};
  }
  __device__ i64 index(const Entry &entry, int m) const {
    return m == mode ? entry.row : fields(entry.key, m) + entry.base[m];
  }
  __device__ const i64 *base_of(i64 tile) const { return tile_base + tile * order; }
};

template <class T> struct DenseEntries {
  i64 dims[max_order];
  i64 counts[max_order];  // elements, in the order of memory, from an index to the next
  i64 strides[max_order]; // numbers from an index to the next
  const T *values;
  int order;
  bool gaps;

  using Entry = i64;
  explicit DenseEntries(const DenseView &x)
      : values(static_cast<const T *>(x.values)), order(static_cast<int>(x.dims.size())),
        gaps(!InMemoryOrder(x).view().strides.empty()) {
    const auto modes = modes_in_memory(x);
    const auto all = strides_of(x);
    i64 count = 1;
    for (int k = 0; k < order; ++k) {
      const auto m = static_cast<std::size_t>(modes[static_cast<std::size_t>(k)]);
      dims[m] = x.dims[m];
      counts[m] = count;
      strides[m] = all[m];
      count *= dims[m];
    }
  }
  __device__ Entry at(i64 k) const { return k; }
  __device__ i64 index(const Entry &k, int m) const { return k / counts[m] % dims[m]; }
};

/// The value of entry k.
template <class Entries> __device__ inline auto value_of(const Entries &x, i64 k) { return x.values[k]; }
template <class T> __device__ inline T value_of(const DenseEntries<T> &x, i64 k) {
  if (!x.gaps)
    return x.values[k];
  i64 place = 0;
  for (int m = 0; m < x.order; ++m)
    place += x.index(k, m) * x.strides[m];
  return x.values[place];
}

/// Calls f(entries) with the reader of a copy's key width.
template <class T, class F> void with_keys(const SortedView &x, F &&f) {
  if (x.key_bytes == 4)
    f(SortedEntries<T, std::uint32_t>(x));
  else if (x.key_bytes == 8)
    f(SortedEntries<T, u64>(x));
  else
    f(SortedEntries<T, u128>(x));
}

/// All factors of a model or of an MTTKRP; a missing one is null.
template <class T> struct Factors {
  const T *data[max_order];
  i64 ld[max_order];
  int order;

  explicit Factors(std::span<const ConstMatrix> factors) : order(static_cast<int>(factors.size())) {
    for (int m = 0; m < order; ++m) {
      data[m] = static_cast<const T *>(factors[static_cast<std::size_t>(m)].data);
      ld[m] = factors[static_cast<std::size_t>(m)].ld;
    }
  }
  __device__ T operator()(int m, i64 i, i64 r) const { return data[m][i * ld[m] + r]; }
};

/// value times the product of the factors' entries in column r at an entry's coordinates, all modes but `mode`.
template <class Entries, class T, class Term>
__device__ inline Term times_factors(const Entries &x, const typename Entries::Entry &entry, Term value,
                                     const Factors<T> &factors, int mode, i64 r) {
  for (int m = 0; m < x.order; ++m)
    if (m != mode)
      value *= static_cast<Term>(factors(m, x.index(entry, m), r));
  return value;
}

} // namespace td::kernels::cuda
