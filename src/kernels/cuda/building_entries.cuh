// What is done to each entry, run, row or tile while a tensor is built, and the loop over them.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "kernels/building.hpp"
#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

inline constexpr const char *while_building = "building a tensor on the GPU";
inline constexpr int most_moves = 128; // a key has no more bits

/// Calls f(k) for the entries of an array of `count`, one after the other over all blocks.
template <class F> __device__ void for_entries(i64 count, F &&f) {
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < count; k += i64{gridDim.x} * blockDim.x)
    f(k);
}

template <class F> __global__ void each(i64 count, const __grid_constant__ F f) { for_entries(count, f); }

/// Calls f(k) on the GPU for all k below count.
template <class F> void launch(Gpu &device, i64 count, F f, int threads_of_block = block_threads) {
  if (count == 0)
    return;
  each<<<blocks_for(device, count, threads_of_block), static_cast<unsigned>(threads_of_block), 0, device.stream()>>>(
      count, f);
  check_launch(while_building);
}

struct Moves {
  int count = 0;
  std::uint8_t from[most_moves];
  std::uint8_t to[most_moves];
  std::uint8_t bits[most_moves];

  explicit Moves(std::span<const BitMove> moves) {
    for (const BitMove &m : moves) {
      if (m.count == 0)
        continue;
      from[count] = static_cast<std::uint8_t>(m.from);
      to[count] = static_cast<std::uint8_t>(m.to);
      bits[count++] = static_cast<std::uint8_t>(m.count);
    }
  }

  template <class To, class From> __device__ To operator()(From key) const {
    To result = 0;
    for (int m = 0; m < count; ++m) {
      const From field = (key >> from[m]) & low_bits<From>(bits[m]);
      result |= static_cast<To>(static_cast<To>(field) << to[m]);
    }
    return result;
  }

  template <class T> __device__ static T low_bits(int count) {
    return count >= static_cast<int>(8 * sizeof(T)) ? ~T{0} : static_cast<T>((T{1} << count) - 1);
  }
};

/// Moves by a table of 256 results for each byte of a number; in the GPU's memory. For moves of single bits, as of an
/// interleaved key.
template <class To> struct Tables {
  const To *results;
  int bytes;
  template <class From> __device__ To operator()(From key) const {
    To result = 0;
    for (int b = 0; b < bytes; ++b) {
      result |= results[256 * b + static_cast<int>(key & 0xff)];
      key >>= 8;
    }
    return result;
  }
};

template <class To> std::vector<To> results_of(std::span<const BitMove> moves) {
  int bits = 0;
  for (const BitMove &m : moves)
    bits = std::max(bits, m.from + m.count);
  std::vector<To> at_bit(static_cast<std::size_t>((bits + 7) / 8 * 8), To{0}); // where a bit goes
  for (const BitMove &m : moves)
    for (int k = 0; k < m.count; ++k)
      at_bit[static_cast<std::size_t>(m.from + k)] |= To{1} << (m.to + k);
  std::vector<To> results(32 * at_bit.size(), To{0});
  for (std::size_t byte = 0; byte < at_bit.size() / 8; ++byte)
    for (std::size_t v = 1; v < 256; ++v)
      results[256 * byte + v] =
          results[256 * byte + (v & (v - 1))] | at_bit[8 * byte + static_cast<std::size_t>(std::countr_zero(v))];
  return results;
}

/// Calls f with a number of the type that keys of so many bytes have.
template <class F> void with_packed_key(int bytes, F &&f) {
  if (bytes == 8)
    f(u64{});
  else
    f(u128{});
}
template <class F> void with_key(int bytes, F &&f) {
  if (bytes == 4)
    f(std::uint32_t{});
  else
    with_packed_key(bytes, f);
}

/// A row's number; the lists are in the GPU's memory.
struct Numbers {
  const u64 *words;
  const i64 *before;
  __device__ i64 operator()(i64 row) const {
    if (words == nullptr)
      return row;
    const u64 below = (u64{1} << (row % 64)) - 1;
    return before[row / 64] + __popcll(words[row / 64] & below);
  }
};

// What is done to each entry, k; of a caller's coordinates:

template <class Index> struct IsOutside {
  const Index *index;
  u64 dim, base;
  // Below the base wraps round to a huge number: one comparison tests both ends.
  __device__ bool operator()(i64 k) const { return static_cast<u64>(static_cast<i64>(index[k])) - base >= dim; }
};

template <class T> struct IsNotFinite {
  const T *values;
  __device__ bool operator()(i64 k) const { return !isfinite(values[k]); }
};

template <class Index> struct MarkRow {
  const Index *index;
  i64 base;
  unsigned long long *words;
  __device__ void operator()(i64 k) const {
    const i64 row = static_cast<i64>(index[k]) - base;
    const unsigned long long bit = 1ull << (row % 64);
    if ((words[row / 64] & bit) == 0) // what others set meanwhile is at worst set again
      atomicOr(words + row / 64, bit);
  }
};

template <class Index, class Key> struct Encode {
  struct Mode {
    const Index *index;
    Numbers number;
    Tables<Key> moves;
  };
  int order;
  i64 base;
  Mode modes[max_order];
  Key *keys;
  __device__ void operator()(i64 k) const {
    Key key = 0;
    for (int m = 0; m < order; ++m)
      key |= modes[m].moves(static_cast<u64>(modes[m].number(static_cast<i64>(modes[m].index[k]) - base)));
    keys[k] = key;
  }
};

// of keys and values:

template <class Key> struct Repeats {
  const Key *keys;
  __device__ bool operator()(i64 k) const { return k > 0 && keys[k] == keys[k - 1]; }
};

/// The first k from `from` to `end` with is(k). Several at a time, so that enough is on its way from memory.
template <class Is>
__global__ void keep_first(i64 from, i64 end, const __grid_constant__ Is is, unsigned long long *first) {
  constexpr int some = 4;
  const i64 threads = i64{gridDim.x} * blockDim.x;
  for (i64 begin = from + i64{blockIdx.x} * blockDim.x + threadIdx.x; begin < end; begin += some * threads) {
    bool any[some];
#pragma unroll
    for (int s = 0; s < some; ++s)
      any[s] = is(min(begin + s * threads, end - 1));
#pragma unroll
    for (int s = 0; s < some; ++s)
      if (any[s])
        atomicMin(first, static_cast<unsigned long long>(min(begin + s * threads, end - 1)));
  }
}

template <class Key> struct Starts {
  const Key *keys;
  Key mask;
  __device__ bool operator()(i64 k) const { return k == 0 || ((keys[k] ^ keys[k - 1]) & mask) != 0; }
};

/// The sums of runs; the last run ends at `end`. The first sum that is not finite is noted.
template <class Key, class T> struct SumRun {
  const Key *keys;
  const T *values;
  const std::uint32_t *begin;
  i64 runs, end;
  Key *kept;
  T *sums;
  unsigned long long *first_bad;
  __device__ void operator()(i64 run) const {
    const i64 next = run + 1 < runs ? i64{begin[run + 1]} : end;
    kept[run] = keys[begin[run]];
    double sum = 0;
    for (i64 k = begin[run]; k < next; ++k)
      sum += static_cast<double>(values[k]);
    sums[run] = static_cast<T>(sum);
    if (!isfinite(sums[run]))
      atomicMin(first_bad, static_cast<unsigned long long>(run));
  }
};

template <class Key> struct TakeKey {
  const Key *keys;
  const i64 *entries;
  u128 *out;
  __device__ void operator()(i64 k) const { out[k] = keys[entries[k]]; }
};

/// Words that are sorted have an entry's number below what they are sorted by.
constexpr int number_bits = 32;

template <class Key, class T, class Word> struct TakeEntry {
  const Key *keys;
  const T *values;
  const Word *words; // or numbers alone
  Key *keys_out;
  T *values_out;
  __device__ void operator()(i64 k) const {
    const auto number = static_cast<std::uint32_t>(words[k]);
    keys_out[k] = keys[number];
    values_out[k] = values[number];
  }
};

/// The first of sorted keys that has `fields[k]` or more above its lowest bits.
template <class Key> struct FindFirst {
  const Key *keys;
  i64 count;
  int shift;
  const i64 *fields;
  i64 *first;
  __device__ void operator()(i64 k) const {
    const auto field = static_cast<Key>(fields[k]);
    i64 below = 0;
    for (i64 end = count; below < end;) {
      const i64 middle = (below + end) / 2;
      if (keys[middle] >> shift < field)
        below = middle + 1;
      else
        end = middle;
    }
    first[k] = below;
  }
};

template <class From, class To> struct Recode {
  const From *from;
  Tables<To> moves;
  To *to;
  __device__ void operator()(i64 k) const { to[k] = moves(from[k]); }
};

/// Each lane of a warp adds up one block of values, in order; the warp fetches them together, 32 neighbours at a
/// time.
template <class T>
__global__ void sum_blocks(const T *values, i64 n, i64 block, i64 blocks, double scale, ValueSums *sums) {
  __shared__ T tile[warp][warp + 1];
  const int lane = static_cast<int>(threadIdx.x);
  const i64 first = i64{blockIdx.x} * warp;
  const i64 own = first + lane;
  T next[warp]; // on their way while those before are added up
  const auto fetch = [&](i64 at) {
#pragma unroll
    for (int s = 0; s < warp; ++s) {
      const i64 k = (first + s) * block + at + lane;
      next[s] = at + lane < block && k < n ? values[k] : T{0};
    }
  };
  ValueSums s{0, 0, INFINITY, -INFINITY, 0};
  fetch(0);
  for (i64 at = 0; at < block; at += warp) {
#pragma unroll
    for (int k = 0; k < warp; ++k)
      tile[k][lane] = next[k];
    __syncwarp();
    if (at + warp < block)
      fetch(at + warp);
    const i64 count = min(min(i64{warp}, block - at), n - own * block - at);
    for (int k = 0; k < count; ++k) {
      const auto x = static_cast<double>(tile[lane][k]);
      const double y = __dmul_rn(x, scale); // each rounded by itself, as on the host
      s.sum = __dadd_rn(s.sum, y);
      s.squares = __dadd_rn(s.squares, __dmul_rn(y, y));
      s.min = x < s.min ? x : s.min;
      s.max = x > s.max ? x : s.max;
      s.zeros += x == 0 ? 1 : 0;
    }
    __syncwarp();
  }
  if (own < blocks)
    sums[own] = s;
}

template <class Key> struct Field {
  const Key *keys;
  int shift, bits;
  __device__ i64 operator()(i64 k) const { return static_cast<i64>((keys[k] >> shift) & Moves::low_bits<Key>(bits)); }
};

/// Ranges, ascending, whose bounds are one array.
struct Bounds {
  const i64 *at;
  int count;
  /// Bounds that are not greater: an odd number within a range.
  __device__ int below(i64 field) const {
    int below = 0;
    for (int end = count; below < end;) {
      const int middle = (below + end) / 2;
      if (at[middle] <= field)
        below = middle + 1;
      else
        end = middle;
    }
    return below;
  }
};

template <class Key> struct HasField {
  Field<Key> field;
  Bounds ranges;
  __device__ bool operator()(i64 k) const { return ranges.below(field(k)) % 2 != 0; }
};

/// Puts the owner of the field's range above the entry's number.
template <class Key> struct PutOwner {
  Field<Key> field;
  Bounds ranges;
  const std::uint32_t *owners; // of ranges
  u64 nobody;
  u64 *words;
  __device__ void operator()(i64 k) const {
    const int below = ranges.below(field(k));
    const u64 owner = below % 2 != 0 ? owners[below / 2] : nobody;
    words[k] = owner << number_bits | static_cast<u64>(k);
  }
};

/// begin[k] := the first of sorted words with k or more above the number.
struct FindBegin {
  const u64 *words;
  i64 count;
  i64 *begin;
  __device__ void operator()(i64 k) const {
    i64 below = 0;
    for (i64 end = count; below < end;) {
      const i64 middle = (below + end) / 2;
      if (static_cast<i64>(words[middle] >> number_bits) < k)
        below = middle + 1;
      else
        end = middle;
    }
    begin[k] = below;
  }
};

template <class Key> struct CountField {
  Field<Key> field;
  unsigned long long *counts;
  __device__ void operator()(i64 k) const { atomicAdd(counts + field(k), 1ull); }
};

constexpr int histogram_threads = 1024;

/// Counts in `count` counters of 4 bytes of shared memory, whose sums over blocks go to `counts`.
template <class Key> __global__ void histogram(i64 n, int count, Field<Key> field, unsigned long long *counts) {
  extern __shared__ std::uint32_t own[];
  for (int k = static_cast<int>(threadIdx.x); k < count; k += histogram_threads)
    own[k] = 0;
  __syncthreads();
  for_entries(n, [&](i64 k) { atomicAdd(own + field(k), 1u); });
  __syncthreads();
  for (int k = static_cast<int>(threadIdx.x); k < count; k += histogram_threads)
    if (own[k] != 0)
      atomicAdd(counts + k, static_cast<unsigned long long>(own[k]));
}

} // namespace td::kernels::cuda
