// Synthetic tensors of the shapes of known ones, made on the GPU, and copies of them as td stores tensors. Index of
// mode m: dims[m] u^2 with u uniform, through a fixed permutation so that rows of many entries are not neighbours;
// duplicates are dropped; values in [1, 2).
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "core/checked.hpp"
#include "formats/key.hpp"
#include "kernels/views.hpp"

namespace bench {

using namespace td;
using u32 = std::uint32_t;

inline void check(cudaError_t result, const char *what) {
  if (result == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

/// Memory of the GPU.
template <class T> class Array {
public:
  Array() = default;
  explicit Array(i64 size) : size_(size) {
    check(cudaMallocAsync(&data_, static_cast<std::size_t>(std::max<i64>(size, 1)) * sizeof(T), nullptr), "allocating");
  }
  explicit Array(const std::vector<T> &host) : Array(static_cast<i64>(host.size())) {
    check(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copying");
  }
  Array(Array &&other) noexcept { swap(other); }
  Array &operator=(Array &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Array() {
    if (data_ != nullptr)
      cudaFreeAsync(data_, nullptr);
  }
  T *data() const { return data_; }
  i64 size() const { return size_; }
  std::vector<T> host() const {
    std::vector<T> v(static_cast<std::size_t>(size_));
    check(cudaMemcpy(v.data(), data_, v.size() * sizeof(T), cudaMemcpyDeviceToHost), "copying");
    return v;
  }

private:
  void swap(Array &other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  T *data_ = nullptr;
  i64 size_ = 0;
};

/// The median time of so many calls, after one that is not counted.
inline double median_ms(cudaStream_t stream, const std::function<void()> &call, int times) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> ms;
  call();
  for (int i = 0; i < times; ++i) {
    cudaEventRecord(begin, stream);
    call();
    cudaEventRecord(end, stream);
    check(cudaEventSynchronize(end), "timing");
    cudaEventElapsedTime(&ms.emplace_back(), begin, end);
  }
  check(cudaGetLastError(), "timing");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

/// Calls one of CUB's device algorithms with the memory that it asks for.
template <class Call> void with_workspace(Call &&call) {
  std::size_t bytes = 0;
  check(call(nullptr, bytes), "asking for a workspace");
  const Array<char> workspace(static_cast<i64>(bytes));
  check(call(workspace.data(), bytes), "sorting or scanning");
}

constexpr unsigned grid = 4096;
constexpr unsigned block = 256;
#define FOR_EACH(k, n)                                                                                                 \
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < (n); k += i64{gridDim.x} * blockDim.x)

/// The finalizer of SplitMix64.
__host__ __device__ inline u64 mix(u64 x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}
__host__ __device__ inline double uniform(u64 bits) { return static_cast<double>(mix(bits) >> 11) * 0x1p-53; }

struct Shape {
  std::string name;
  std::vector<i64> dims;
  i64 drawn = 0; // entries before duplicates are dropped
};

/// What kernels need of a shape.
struct Layout {
  int order = 0;
  i64 dims[max_order];
  i64 factor[max_order]; // index -> factor * index + constant modulo dim: the permutation
  int total = 0;         // bits of the interleaved key, from the lowest
  int mode[128];
  int level[128];
};

struct Columns {
  u32 *index[max_order];
};

__global__ void draw(Layout x, u64 seed, i64 n, u128 *keys) {
  FOR_EACH(k, n) {
    i64 index[max_order];
    for (int m = 0; m < x.order; ++m) {
      const double u = uniform(seed + mix(static_cast<u64>(k) * max_order + static_cast<u64>(m)));
      const i64 i = min(static_cast<i64>(static_cast<double>(x.dims[m]) * u * u), x.dims[m] - 1);
      index[m] = static_cast<i64>((static_cast<u128>(i) * static_cast<u128>(x.factor[m]) + 12345) %
                                  static_cast<u128>(x.dims[m]));
    }
    u128 key = 0;
    for (int b = 0; b < x.total; ++b)
      key |= static_cast<u128>((index[x.mode[b]] >> x.level[b]) & 1) << b;
    keys[k] = key;
  }
}

__global__ void take_apart(Layout x, i64 n, const u128 *keys, Columns out, double *values) {
  FOR_EACH(k, n) {
    u32 index[max_order] = {};
    for (int b = 0; b < x.total; ++b)
      index[x.mode[b]] |= static_cast<u32>((keys[k] >> b) & 1) << x.level[b];
    for (int m = 0; m < x.order; ++m)
      out.index[m][k] = index[m];
    values[k] = 1 + uniform(static_cast<u64>(keys[k]) ^ mix(static_cast<u64>(keys[k] >> 64)));
  }
}

template <class From, class To> __global__ void convert(i64 n, const From *from, To *to) {
  FOR_EACH(k, n) to[k] = static_cast<To>(from[k]);
}

template <class T> __global__ void gather(i64 n, const u32 *from, const T *in, T *out) {
  FOR_EACH(k, n) out[k] = in[from[k]];
}

/// Entries in the order of their interleaved index, in coordinates.
struct Entries {
  Shape shape;
  Layout layout;
  i64 nnz = 0;
  Array<u128> keys;
  std::vector<Array<u32>> index;
  Array<double> values;

  Columns columns() const {
    Columns c{};
    for (std::size_t m = 0; m < index.size(); ++m)
      c.index[m] = index[m].data();
    return c;
  }
};

inline Entries make_entries(const Shape &shape) {
  Entries x;
  x.shape = shape;
  x.layout.order = static_cast<int>(shape.dims.size());
  for (std::size_t m = 0; m < shape.dims.size(); ++m) {
    x.layout.dims[m] = shape.dims[m];
    i64 factor = std::max<i64>(1, static_cast<i64>(0.6180339887 * static_cast<double>(shape.dims[m])));
    while (std::gcd(factor, shape.dims[m]) != 1)
      ++factor;
    x.layout.factor[m] = factor;
  }
  for (const auto [mode, level] : formats::interleaved_bits(shape.dims)) {
    x.layout.mode[x.layout.total] = mode;
    x.layout.level[x.layout.total++] = level;
  }
  Array<u128> drawn(shape.drawn), sorted(shape.drawn);
  draw<<<grid, block>>>(x.layout, 42, shape.drawn, drawn.data());
  with_workspace([&](void *work, std::size_t &bytes) {
    return cub::DeviceRadixSort::SortKeys(work, bytes, drawn.data(), sorted.data(), shape.drawn, 0, x.layout.total);
  });
  const Array<i64> count(1);
  with_workspace([&](void *work, std::size_t &bytes) {
    return cub::DeviceSelect::Unique(work, bytes, sorted.data(), drawn.data(), count.data(), shape.drawn);
  });
  x.nnz = count.host()[0];
  for (std::size_t m = 0; m < shape.dims.size(); ++m)
    x.index.emplace_back(x.nnz);
  x.values = Array<double>(x.nnz);
  take_apart<<<grid, block>>>(x.layout, x.nnz, drawn.data(), x.columns(), x.values.data());
  x.keys = std::move(drawn);
  check(cudaDeviceSynchronize(), "drawing entries");
  return x;
}

/// Where the bits of each index go.
struct Cuts {
  int order = 0;
  int mode = 0;
  int kept[max_order];   // bits within a tile, in the key
  int shift[max_order];  // of these in the key
  i64 stride[max_order]; // of tiles
};

__global__ void find_places(Cuts cuts, i64 dim, i64 n, Columns in, u64 *place, u32 *number) {
  FOR_EACH(k, n) {
    i64 tile = 0;
    for (int m = 0; m < cuts.order; ++m)
      if (m != cuts.mode)
        tile += (i64{in.index[m][k]} >> cuts.kept[m]) * cuts.stride[m];
    place[k] = static_cast<u64>(tile * dim + in.index[cuts.mode][k]);
    number[k] = static_cast<u32>(k);
  }
}

template <class Key> __global__ void make_keys(Cuts cuts, i64 n, Columns in, const u32 *number, Key *keys) {
  FOR_EACH(k, n) {
    Key key = 0;
    for (int m = 0; m < cuts.order; ++m)
      if (m != cuts.mode && cuts.kept[m] > 0)
        key |= static_cast<Key>(in.index[m][number[k]] & ((u64{1} << cuts.kept[m]) - 1)) << cuts.shift[m];
    keys[k] = key;
  }
}

__global__ void mark_first(i64 n, const u64 *place, u32 *first) {
  FOR_EACH(k, n) first[k] = k == 0 || place[k] != place[k - 1] ? 1 : 0;
}

__global__ void list_segments(i64 n, const u64 *place, const u32 *first, const u32 *slot, i64 dim, i64 *row_begin,
                              i64 *row_index, i64 *tile) {
  FOR_EACH(k, n)
  if (first[k] == 1) {
    row_begin[slot[k]] = k;
    row_index[slot[k]] = static_cast<i64>(place[k]) % dim;
    tile[slot[k]] = static_cast<i64>(place[k]) / dim;
  }
}

__global__ void list_tiles(i64 segments, i64 tiles, const i64 *tile, i64 *tile_begin) {
  FOR_EACH(t, tiles + 1) {
    i64 lo = 0;
    i64 hi = segments;
    while (lo < hi) {
      const i64 middle = (lo + hi) / 2;
      if (tile[middle] < t)
        lo = middle + 1;
      else
        hi = middle;
    }
    tile_begin[t] = lo;
  }
}

/// A sorted copy like that of formats::build_sorted, except that no rows are heavy.
struct SortedCopy {
  kernels::SortedView view;
  Array<u32> number; // of each entry in the canonical order
  Array<char> keys;
  Array<double> values;
  Array<float> values32;
  Array<i64> row_index, row_begin, tile_begin, tile_base;
};

inline SortedCopy sort_entries(const Entries &x, int mode, std::vector<int> kept) {
  SortedCopy s;
  const i64 n = x.nnz;
  Cuts cuts;
  cuts.order = x.layout.order;
  cuts.mode = mode;
  kept[static_cast<std::size_t>(mode)] = 0;
  const kernels::KeyLayout layout = formats::packed_layout(kept);
  i64 tiles = 1;
  for (std::size_t m = 0; m < kept.size(); ++m) {
    cuts.kept[m] = kept[m];
    cuts.shift[m] = layout.shift[m];
    cuts.stride[m] = tiles;
    if (static_cast<int>(m) != mode)
      tiles *= ((x.shape.dims[m] - 1) >> kept[m]) + 1;
  }
  const i64 dim = x.shape.dims[static_cast<std::size_t>(mode)];
  Array<u64> place(n), sorted(n);
  Array<u32> number(n), slot(n);
  s.number = Array<u32>(n);
  find_places<<<grid, block>>>(cuts, dim, n, x.columns(), place.data(), number.data());
  with_workspace([&](void *work, std::size_t &bytes) {
    return cub::DeviceRadixSort::SortPairs(work, bytes, place.data(), sorted.data(), number.data(), s.number.data(), n,
                                           0, index_bits(tiles * dim));
  });
  const int bits = formats::total_bits(layout);
  const int key_bytes = bits <= 32 ? 4 : formats::key_bytes_for(bits);
  s.keys = Array<char>(n * key_bytes);
  if (key_bytes == 4)
    make_keys<<<grid, block>>>(cuts, n, x.columns(), s.number.data(), reinterpret_cast<u32 *>(s.keys.data()));
  else if (key_bytes == 8)
    make_keys<<<grid, block>>>(cuts, n, x.columns(), s.number.data(), reinterpret_cast<u64 *>(s.keys.data()));
  else
    make_keys<<<grid, block>>>(cuts, n, x.columns(), s.number.data(), reinterpret_cast<u128 *>(s.keys.data()));
  s.values = Array<double>(n);
  s.values32 = Array<float>(n);
  gather<<<grid, block>>>(n, s.number.data(), x.values.data(), s.values.data());
  convert<<<grid, block>>>(n, s.values.data(), s.values32.data());
  mark_first<<<grid, block>>>(n, sorted.data(), number.data());
  with_workspace([&](void *work, std::size_t &bytes) {
    return cub::DeviceScan::ExclusiveSum(work, bytes, number.data(), slot.data(), n);
  });
  u32 ends[2];
  check(cudaMemcpy(&ends[0], slot.data() + n - 1, sizeof(u32), cudaMemcpyDeviceToHost), "counting rows");
  check(cudaMemcpy(&ends[1], number.data() + n - 1, sizeof(u32), cudaMemcpyDeviceToHost), "counting rows");
  const i64 segments = i64{ends[0]} + ends[1];
  s.row_index = Array<i64>(segments);
  s.row_begin = Array<i64>(segments + 1);
  s.tile_begin = Array<i64>(tiles + 1);
  const Array<i64> tile(segments);
  list_segments<<<grid, block>>>(n, sorted.data(), number.data(), slot.data(), dim, s.row_begin.data(),
                                 s.row_index.data(), tile.data());
  check(cudaMemcpy(s.row_begin.data() + segments, &n, sizeof n, cudaMemcpyHostToDevice), "ending the last row");
  list_tiles<<<grid, block>>>(segments, tiles, tile.data(), s.tile_begin.data());
  std::vector<i64> base(static_cast<std::size_t>(tiles) * kept.size(), 0);
  for (std::size_t m = 0; m < kept.size(); ++m)
    for (i64 t = 0; t < tiles && static_cast<int>(m) != mode; ++t)
      base[static_cast<std::size_t>(t) * kept.size() + m] =
          (t / cuts.stride[m] % (((x.shape.dims[m] - 1) >> kept[m]) + 1)) << kept[m];
  s.tile_base = Array<i64>(base);
  s.view.dims = x.shape.dims;
  s.view.mode = mode;
  s.view.nnz = n;
  s.view.layout = layout;
  s.view.key_bytes = key_bytes;
  s.view.keys = s.keys.data();
  s.view.rows = segments;
  s.view.row_index = s.row_index.data();
  s.view.row_begin = s.row_begin.data();
  s.view.tiles = tiles;
  s.view.tile_begin = s.tile_begin.data();
  s.view.tile_base = s.tile_base.data();
  s.view.tile_light = s.tile_begin.data();
  check(cudaDeviceSynchronize(), "sorting a copy");
  return s;
}

/// A copy like that of formats::build_blco.
struct BlcoCopy {
  kernels::BlcoView view;
  Array<u64> keys;
  Array<float> values32;
  Array<i64> block_begin, block_base;
};

__global__ void mark_blocks(i64 n, const u128 *keys, u32 *first) {
  FOR_EACH(k, n) first[k] = k == 0 || keys[k] >> 64 != keys[k - 1] >> 64 ? 1 : 0;
}

inline BlcoCopy make_blco(const Entries &x) {
  BlcoCopy b;
  Cuts cuts{};
  cuts.order = x.layout.order;
  cuts.mode = -1;
  std::vector<int> kept(x.shape.dims.size(), 0);
  for (int bit = 0; bit < std::min(64, x.layout.total); ++bit)
    ++kept[static_cast<std::size_t>(x.layout.mode[bit])];
  const kernels::KeyLayout layout = formats::packed_layout(kept);
  for (std::size_t m = 0; m < kept.size(); ++m) {
    cuts.kept[m] = kept[m];
    cuts.shift[m] = layout.shift[m];
  }
  Array<u32> number(x.nnz);
  std::vector<u32> same(static_cast<std::size_t>(x.nnz));
  std::iota(same.begin(), same.end(), 0u);
  number = Array<u32>(same);
  b.keys = Array<u64>(x.nnz);
  make_keys<<<grid, block>>>(cuts, x.nnz, x.columns(), number.data(), b.keys.data());
  b.values32 = Array<float>(x.nnz);
  convert<<<grid, block>>>(x.nnz, x.values.data(), b.values32.data());
  mark_blocks<<<grid, block>>>(x.nnz, x.keys.data(), number.data());
  const std::vector<u32> first = number.host();
  std::vector<i64> begin, base;
  for (i64 k = 0; k < x.nnz; ++k)
    if (first[static_cast<std::size_t>(k)] == 1) {
      begin.push_back(k);
      u128 key = 0;
      check(cudaMemcpy(&key, x.keys.data() + k, sizeof key, cudaMemcpyDeviceToHost), "copying");
      std::vector<i64> upper(kept.size(), 0);
      for (int bit = 64; bit < x.layout.total; ++bit)
        upper[static_cast<std::size_t>(x.layout.mode[bit])] |= static_cast<i64>((key >> bit) & 1)
                                                               << x.layout.level[bit];
      base.insert(base.end(), upper.begin(), upper.end());
    }
  begin.push_back(x.nnz);
  b.block_begin = Array<i64>(begin);
  b.block_base = Array<i64>(base);
  b.view.dims = x.shape.dims;
  b.view.nnz = x.nnz;
  b.view.layout = layout;
  b.view.keys = b.keys.data();
  b.view.blocks = static_cast<i64>(begin.size()) - 1;
  b.view.block_begin = b.block_begin.data();
  b.view.block_base = b.block_base.data();
  check(cudaDeviceSynchronize(), "making BLCO");
  return b;
}

} // namespace bench
