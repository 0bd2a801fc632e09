// Building a sparse tensor on the GPU. What is sorted are keys with their values (CUB's stable radix sort), or, for the
// copies, places of rows with the entries' numbers: few bits, and the entries themselves are moved once.
#include "kernels/cuda/building.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

namespace {

constexpr const char *what = "building a tensor on the GPU";
constexpr int most_moves = 128; // a key has no more bits

/// Of an array of `count` entries, one after the other over all blocks.
template <class F> __device__ void for_entries(i64 count, F &&f) {
  for (i64 k = i64{blockIdx.x} * blockDim.x + threadIdx.x; k < count; k += i64{gridDim.x} * blockDim.x)
    f(k);
}

template <class F> __global__ void each(i64 count, const __grid_constant__ F f) { for_entries(count, f); }

/// Calls f(k) on the GPU for all k below count.
template <class F> void launch(Device &device, i64 count, F f, int threads_of_block = block_threads) {
  if (count == 0)
    return;
  each<<<blocks_for(device, count, threads_of_block), static_cast<unsigned>(threads_of_block), 0, device.stream()>>>(
      count, f);
  check_launch(what);
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

template <class Index, class Key> struct AddToKey {
  const Index *index;
  i64 base;
  Numbers number;
  Tables<Key> moves;
  Key *keys;
  __device__ void operator()(i64 k) const {
    keys[k] |= moves(static_cast<u64>(number(static_cast<i64>(index[k]) - base)));
  }
};

// of keys and values:

template <class Bad> struct KeepFirst {
  Bad bad;
  unsigned long long *first;
  __device__ void operator()(i64 k) const {
    if (bad(k))
      atomicMin(first, static_cast<unsigned long long>(k));
  }
};

template <class Key> struct Repeats {
  const Key *keys;
  __device__ bool operator()(i64 k) const { return k > 0 && keys[k] == keys[k - 1]; }
};

template <class Key> struct Starts {
  const Key *keys;
  Key mask;
  __device__ bool operator()(i64 k) const { return k == 0 || ((keys[k] ^ keys[k - 1]) & mask) != 0; }
};

template <class Key, class T> struct SumRun {
  const Key *keys;
  const T *values;
  const i64 *begin;
  Key *kept;
  T *sums;
  __device__ void operator()(i64 run) const {
    kept[run] = keys[begin[run]];
    double sum = 0;
    for (i64 k = begin[run]; k < begin[run + 1]; ++k)
      sum += static_cast<double>(values[k]);
    sums[run] = static_cast<T>(sum);
  }
};

template <class Key> struct TakeKey {
  const Key *keys;
  const i64 *entries;
  u128 *out;
  __device__ void operator()(i64 k) const { out[k] = keys[entries[k]]; }
};

template <class From, class To> struct Recode {
  const From *from;
  Tables<To> moves;
  To *to;
  __device__ void operator()(i64 k) const { to[k] = moves(from[k]); }
};

template <class T> struct SumValues {
  const T *values;
  i64 n, block;
  double scale;
  ValueSums *sums;
  __device__ void operator()(i64 b) const {
    ValueSums s{0, 0, INFINITY, -INFINITY, 0};
    const i64 end = min(n, (b + 1) * block);
    for (i64 first = b * block; first < end; first += ahead) {
      T some[ahead]; // fetched before the first is used
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        some[k] = first + k < end ? values[first + k] : T{0};
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (first + k < end)
          add(s, static_cast<double>(some[k]));
    }
    sums[b] = s;
  }
  static constexpr int ahead = 16;
  __device__ void add(ValueSums &s, double x) const {
    const double y = __dmul_rn(x, scale); // each rounded by itself, as on the host
    s.sum = __dadd_rn(s.sum, y);
    s.squares = __dadd_rn(s.squares, __dmul_rn(y, y));
    s.min = x < s.min ? x : s.min;
    s.max = x > s.max ? x : s.max;
    s.zeros += x == 0 ? 1 : 0;
  }
};

template <class Key> struct Field {
  const Key *keys;
  int shift, bits;
  __device__ i64 operator()(i64 k) const { return static_cast<i64>((keys[k] >> shift) & Moves::low_bits<Key>(bits)); }
};

template <class Key> struct CountField {
  Field<Key> field;
  unsigned long long *counts;
  __device__ void operator()(i64 k) const { atomicAdd(counts + field(k), 1ull); }
};

constexpr i64 histogram_size = 10240; // counters of 4 bytes in 40 KiB of shared memory

template <class Key> __global__ void histogram(i64 n, int count, Field<Key> field, unsigned long long *counts) {
  __shared__ std::uint32_t own[histogram_size];
  for (int k = static_cast<int>(threadIdx.x); k < count; k += block_threads)
    own[k] = 0;
  __syncthreads();
  for_entries(n, [&](i64 k) { atomicAdd(own + field(k), 1u); });
  __syncthreads();
  for (int k = static_cast<int>(threadIdx.x); k < count; k += block_threads)
    if (own[k] != 0)
      atomicAdd(counts + k, static_cast<unsigned long long>(own[k]));
}

// and of a copy:

struct InvertOrder {
  const i64 *row_at;
  i64 *rank;
  __device__ void operator()(i64 at) const { rank[row_at[at]] = at; }
};

struct Cuts {
  int count = 0;
  std::uint8_t shift[max_order];
  std::uint8_t bits[max_order];
  i64 stride[max_order];
};

/// Where an entry's row stands among all of all tiles, and the entry's number.
template <class Key, class Place> struct FindPlace {
  Field<Key> row;
  const i64 *rank;
  Cuts cuts;
  Place *places;
  std::uint32_t *numbers;
  __device__ void operator()(i64 k) const {
    i64 place = rank == nullptr ? row(k) : rank[row(k)];
    for (int c = 0; c < cuts.count; ++c)
      place += Field<Key>{row.keys, cuts.shift[c], cuts.bits[c]}(k)*cuts.stride[c];
    places[k] = static_cast<Place>(place);
    numbers[k] = static_cast<std::uint32_t>(k);
  }
};

template <class From, class To, class T> struct Gather {
  const std::uint32_t *numbers;
  const From *keys;
  const T *values;
  Moves moves;
  To *keys_out;
  T *values_out;
  __device__ void operator()(i64 k) const {
    keys_out[k] = moves.template operator()<To>(keys[numbers[k]]);
    values_out[k] = values[numbers[k]];
  }
};

template <class Place> struct RowIndex {
  const Place *places;
  const i64 *begin;
  i64 dim;
  const i64 *row_at;
  i64 *out;
  __device__ void operator()(i64 row) const {
    const auto at = static_cast<i64>(places[begin[row]]) % dim;
    out[row] = row_at == nullptr ? at : row_at[at];
  }
};

/// The first row of a tile.
template <class Place> struct TileBegin {
  const Place *places;
  const i64 *begin;
  i64 rows, dim;
  i64 *out;
  __device__ void operator()(i64 tile) const {
    i64 low = 0;
    i64 high = rows;
    while (low < high) {
      const i64 middle = low + (high - low) / 2;
      if (static_cast<i64>(places[begin[middle]]) < tile * dim)
        low = middle + 1;
      else
        high = middle;
    }
    out[tile] = low;
  }
};

/// Device memory that may be given up or replaced.
class Array {
public:
  Array() = default;
  Array(Device &device, i64 bytes) : device_(&device), data_(device.allocate(bytes, what)) {}
  Array(Array &&other) noexcept { *this = std::move(other); }
  Array &operator=(Array &&other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Array() {
    if (device_ != nullptr)
      device_->release(data_);
  }
  template <class T> T *as() const noexcept { return static_cast<T *>(data_); }

private:
  Device *device_ = nullptr;
  void *data_ = nullptr;
};

class CudaBuilding final : public Building {
public:
  CudaBuilding(Device &device, Staging &staging, const EntriesView &e)
      : device_(device), staging_(staging), dims_(e.dims.begin(), e.dims.end()), base_(e.index_base),
        index_type_(e.index_type), type_(e.value_type), size_(e.nnz), flag_(device, sizeof(u64)) {
    for (int m = 0; m < e.order(); ++m)
      columns_.push_back(uploaded(e.indices[m], e.nnz * size_of(e.index_type)));
    values_ = uploaded(e.values, e.nnz * size_of(e.value_type));
  }

  i64 size() const noexcept override { return size_; }

  i64 first_outside() override {
    const CurrentDevice current(device_.ordinal());
    begin_search();
    for (std::size_t m = 0; m < columns_.size(); ++m)
      with_index([&](auto zero) {
        using Index = decltype(zero);
        search(IsOutside<Index>{columns_[m].as<const Index>(), static_cast<u64>(dims_[m]), static_cast<u64>(base_)});
      });
    return found();
  }

  i64 first_not_finite() override {
    const CurrentDevice current(device_.ordinal());
    return first_bad_value();
  }

  void mark_rows(int mode, u64 *words) override {
    const CurrentDevice current(device_.ordinal());
    const i64 count = dims_[static_cast<std::size_t>(mode)] / 64 + 1;
    const Array marks(device_, count * 8);
    check(cudaMemsetAsync(marks.as<void>(), 0, static_cast<std::size_t>(count) * 8, device_.stream()), what);
    with_index([&](auto zero) {
      using Index = decltype(zero);
      launch(device_, size_,
             MarkRow<Index>{columns_[static_cast<std::size_t>(mode)].as<const Index>(), base_,
                            marks.as<unsigned long long>()});
    });
    device_.download(words, marks.as<void>(), count * 8);
  }

  void encode(int key_bytes, std::span<const std::vector<BitMove>> moves,
              std::span<const RowNumbers> numbers) override {
    const CurrentDevice current(device_.ordinal());
    Array keys(device_, size_ * key_bytes);
    check(cudaMemsetAsync(keys.as<void>(), 0, static_cast<std::size_t>(size_ * key_bytes), device_.stream()), what);
    for (std::size_t m = 0; m < columns_.size(); ++m) {
      const Array words = uploaded(numbers[m].words, numbers[m].count * 8);
      const Array before = uploaded(numbers[m].before, numbers[m].count * 8);
      with_packed_key(key_bytes, [&](auto key) {
        with_index([&](auto zero) {
          using Key = decltype(key);
          using Index = decltype(zero);
          const Placed<Key> tables = placed<Key>(moves[m]);
          launch(device_, size_,
                 AddToKey<Index, Key>{columns_[m].as<const Index>(),
                                      base_,
                                      {words.as<const u64>(), before.as<const i64>()},
                                      tables.view(),
                                      keys.as<Key>()});
        });
      });
      columns_[m] = Array();
    }
    columns_.clear();
    keys_ = std::move(keys);
    key_bytes_ = key_bytes;
    device_.wait();
  }

  void sort() override {
    const CurrentDevice current(device_.ordinal());
    Array keys(device_, size_ * key_bytes_);
    Array values(device_, size_ * size_of(type_));
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        using Key = decltype(key);
        using T = decltype(zero);
        sort_pairs(keys_.as<const Key>(), keys.as<Key>(), values_.as<const T>(), values.as<T>(),
                   static_cast<int>(8 * sizeof(Key)));
      });
    });
    keys_ = std::move(keys);
    values_ = std::move(values);
    device_.wait();
  }

  i64 first_repeat() override {
    const CurrentDevice current(device_.ordinal());
    return find_repeat();
  }

  i64 merge() override {
    const CurrentDevice current(device_.ordinal());
    if (find_repeat() < 0)
      return -1;
    i64 bad = -1;
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        using Key = decltype(key);
        using T = decltype(zero);
        Array begins;
        const i64 runs = find_runs(Starts<Key>{keys_.as<const Key>(), ~Key{0}}, begins);
        Array kept(device_, runs * static_cast<i64>(sizeof(Key)));
        Array sums(device_, runs * static_cast<i64>(sizeof(T)));
        launch(device_, runs,
               SumRun<Key, T>{keys_.as<const Key>(), values_.as<const T>(), begins.as<const i64>(), kept.as<Key>(),
                              sums.as<T>()});
        keys_ = std::move(kept);
        values_ = std::move(sums);
        size_ = runs;
        bad = first_bad_value();
      });
    });
    return bad;
  }

  std::vector<u128> keys(std::span<const i64> entries) override {
    const CurrentDevice current(device_.ordinal());
    std::vector<u128> some(entries.size());
    const Array where = uploaded(entries.data(), static_cast<i64>(entries.size_bytes()));
    const Array wide(device_, std::ssize(some) * 16);
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      launch(device_, std::ssize(some), TakeKey<Key>{keys_.as<const Key>(), where.as<const i64>(), wide.as<u128>()});
    });
    device_.download(some.data(), wide.as<void>(), std::ssize(some) * 16);
    return some;
  }

  void recode(int key_bytes, std::span<const BitMove> moves) override {
    const CurrentDevice current(device_.ordinal());
    Array keys(device_, size_ * key_bytes);
    with_packed_key(key_bytes_, [&](auto from) {
      with_packed_key(key_bytes, [&](auto to) {
        using From = decltype(from);
        using To = decltype(to);
        const Placed<To> tables = placed<To>(moves);
        launch(device_, size_, Recode<From, To>{keys_.as<const From>(), tables.view(), keys.as<To>()});
      });
    });
    keys_ = std::move(keys);
    key_bytes_ = key_bytes;
    device_.wait();
  }

  std::vector<i64> runs(u128 mask) override {
    const CurrentDevice current(device_.ordinal());
    Array begins;
    i64 count = 0;
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      count = find_runs(Starts<Key>{keys_.as<const Key>(), static_cast<Key>(mask)}, begins);
    });
    std::vector<i64> all(static_cast<std::size_t>(count) + 1);
    device_.download(all.data(), begins.as<void>(), (count + 1) * 8);
    return all;
  }

  void sum_values(double scale, i64 block, ValueSums *sums) override {
    const CurrentDevice current(device_.ordinal());
    const i64 blocks = (size_ + block - 1) / block;
    const Array all(device_, blocks * static_cast<i64>(sizeof(ValueSums)));
    dispatch(type_, [&](auto zero) {
      using T = decltype(zero);
      launch(device_, blocks, SumValues<T>{values_.as<const T>(), size_, block, scale, all.as<ValueSums>()}, warp);
    });
    device_.download(sums, all.as<void>(), blocks * static_cast<i64>(sizeof(ValueSums)));
  }

  void count_fields(int shift, int bits, std::span<i64> counts) override {
    const CurrentDevice current(device_.ordinal());
    const i64 count = std::ssize(counts);
    const Array all(device_, count * 8);
    check(cudaMemsetAsync(all.as<void>(), 0, static_cast<std::size_t>(count) * 8, device_.stream()), what);
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      const Field<Key> field{keys_.as<const Key>(), shift, bits};
      if (count <= histogram_size)
        histogram<<<4 * static_cast<unsigned>(device_.multiprocessors()), block_threads, 0, device_.stream()>>>(
            size_, static_cast<int>(count), field, all.as<unsigned long long>());
      else
        launch(device_, size_, CountField<Key>{field, all.as<unsigned long long>()});
      check_launch(what);
    });
    device_.download(counts.data(), all.as<void>(), count * 8);
  }

  void download_keys(void *keys) override { download(keys, keys_, size_ * key_bytes_); }
  void download_values(void *values) override { download(values, values_, size_ * size_of(type_)); }

  i64 make_copy(const CopyPlan &plan) override {
    const CurrentDevice current(device_.ordinal());
    copy_ = {};
    copy_.tiles = plan.tiles;
    copy_.key_bytes = plan.key_bytes;
    if (plan.tiles * plan.dim <= i64{1} << 32)
      make_copy_in_places<std::uint32_t>(plan);
    else
      make_copy_in_places<u64>(plan);
    return copy_.rows;
  }

  void download_copy(const CopyArrays &to) override {
    download(to.keys, copy_.keys, size_ * copy_.key_bytes);
    download(to.values, copy_.values, size_ * size_of(type_));
    download(to.row_index, copy_.row_index, copy_.rows * 8);
    download(to.row_begin, copy_.row_begin, (copy_.rows + 1) * 8);
    download(to.tile_begin, copy_.tile_begin, (copy_.tiles + 1) * 8);
  }

private:
  struct Copy {
    i64 rows = 0;
    i64 tiles = 1;
    int key_bytes = 8;
    Array keys, values, row_index, row_begin, tile_begin;
  };

  template <class F> void with_index(F &&f) const { dispatch(index_type_, f); }

  template <class To> struct Placed {
    Array results;
    int bytes;
    Tables<To> view() const { return {results.as<const To>(), bytes}; }
  };
  template <class To> Placed<To> placed(std::span<const BitMove> moves) {
    const std::vector<To> results = results_of<To>(moves);
    return {uploaded(results.data(), std::ssize(results) * static_cast<i64>(sizeof(To))),
            static_cast<int>(results.size() / 256)};
  }

  Array uploaded(const void *host, i64 bytes) {
    if (host == nullptr || bytes == 0)
      return {};
    Array array(device_, bytes);
    staging_.upload(array.as<void>(), host, bytes);
    return array;
  }

  void download(void *to, const Array &from, i64 bytes) {
    const CurrentDevice current(device_.ordinal());
    staging_.download(to, from.as<void>(), bytes);
  }

  // The first entry for which one of several conditions holds.

  void begin_search() { check(cudaMemsetAsync(flag_.as<void>(), 0xff, sizeof(u64), device_.stream()), what); }
  template <class Bad> void search(Bad bad) {
    launch(device_, size_, KeepFirst<Bad>{bad, flag_.as<unsigned long long>()});
  }
  i64 found() {
    i64 first = -1;
    device_.download(&first, flag_.as<void>(), sizeof first);
    return first; // all bits set: -1
  }

  i64 find_repeat() {
    begin_search();
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      search(Repeats<Key>{keys_.as<const Key>()});
    });
    return found();
  }

  i64 first_bad_value() {
    begin_search();
    dispatch(type_, [&](auto zero) {
      using T = decltype(zero);
      search(IsNotFinite<T>{values_.as<const T>()});
    });
    return found();
  }

  template <class Key, class Payload>
  void sort_pairs(const Key *keys, Key *keys_after, const Payload *payload, Payload *payload_after, int bits) {
    std::size_t bytes = 0;
    const auto run = [&](void *memory) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, keys_after, payload, payload_after, size_, 0, bits,
                                             device_.stream());
    };
    check(run(nullptr), what);
    const Scratch<char> memory(device_, static_cast<i64>(bytes), what);
    check(run(memory.data()), what);
  }

  /// begins := all entries with starts(k), then size(); gives how many there are without that.
  template <class F> i64 find_runs(F starts, Array &begins) {
    const Scratch<i64> count(device_, 1, what);
    const Array all(device_, size_ * 8);
    std::size_t bytes = 0;
    const auto run = [&](void *memory) {
      return cub::DeviceSelect::If(memory, bytes, thrust::counting_iterator<i64>(0), all.as<i64>(), count.data(), size_,
                                   starts, device_.stream());
    };
    check(run(nullptr), what);
    {
      const Scratch<char> memory(device_, static_cast<i64>(bytes), what);
      check(run(memory.data()), what);
    }
    i64 runs = 0;
    device_.download(&runs, count.data(), sizeof runs);
    begins = Array(device_, (runs + 1) * 8);
    check(cudaMemcpyAsync(begins.as<void>(), all.as<void>(), static_cast<std::size_t>(runs) * 8,
                          cudaMemcpyDeviceToDevice, device_.stream()),
          what);
    device_.upload(begins.as<i64>() + runs, &size_, sizeof size_);
    return runs;
  }

  template <class Place> void make_copy_in_places(const CopyPlan &plan) {
    Array place(device_, size_ * static_cast<i64>(sizeof(Place)));
    Array number(device_, size_ * 4);
    Array row_at = uploaded(plan.row_at.data(), static_cast<i64>(plan.row_at.size_bytes()));
    fill_places(plan, row_at, place.as<Place>(), number.as<std::uint32_t>());
    {
      Array sorted_place(device_, size_ * static_cast<i64>(sizeof(Place)));
      Array sorted_number(device_, size_ * 4);
      sort_pairs(place.as<const Place>(), sorted_place.as<Place>(), number.as<const std::uint32_t>(),
                 sorted_number.as<std::uint32_t>(),
                 std::max(1, static_cast<int>(std::bit_width(static_cast<u64>(plan.tiles * plan.dim - 1)))));
      place = std::move(sorted_place);
      number = std::move(sorted_number);
    }
    gather(plan, number.as<const std::uint32_t>());
    const auto *places = place.as<const Place>();
    copy_.rows = find_runs(Starts<Place>{places, static_cast<Place>(~Place{0})}, copy_.row_begin);
    copy_.row_index = Array(device_, copy_.rows * 8);
    const auto *begin = copy_.row_begin.as<const i64>();
    launch(device_, copy_.rows,
           RowIndex<Place>{places, begin, plan.dim, row_at.as<const i64>(), copy_.row_index.as<i64>()});
    copy_.tile_begin = Array(device_, (plan.tiles + 1) * 8);
    launch(device_, plan.tiles + 1, TileBegin<Place>{places, begin, copy_.rows, plan.dim, copy_.tile_begin.as<i64>()});
    device_.wait();
  }

  template <class Place>
  void fill_places(const CopyPlan &plan, const Array &row_at, Place *places, std::uint32_t *numbers) {
    Cuts cuts;
    for (const CopyPlan::Cut &cut : plan.cuts) {
      cuts.shift[cuts.count] = static_cast<std::uint8_t>(cut.shift);
      cuts.bits[cuts.count] = static_cast<std::uint8_t>(cut.bits);
      cuts.stride[cuts.count++] = cut.stride * plan.dim;
    }
    const bool ranked = !plan.row_at.empty();
    const Array rank(device_, ranked ? plan.dim * 8 : 0);
    if (ranked)
      launch(device_, plan.dim, InvertOrder{row_at.as<const i64>(), rank.as<i64>()});
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      launch(device_, size_,
             FindPlace<Key, Place>{
                 {keys_.as<const Key>(), plan.row_shift, plan.row_bits}, rank.as<const i64>(), cuts, places, numbers});
    });
  }

  /// The copy's keys and values, by the numbers of their entries.
  void gather(const CopyPlan &plan, const std::uint32_t *numbers) {
    copy_.keys = Array(device_, size_ * plan.key_bytes);
    copy_.values = Array(device_, size_ * size_of(type_));
    with_packed_key(key_bytes_, [&](auto from) {
      with_key(plan.key_bytes, [&](auto to) {
        dispatch(type_, [&](auto zero) {
          using From = decltype(from);
          using To = decltype(to);
          using T = decltype(zero);
          launch(device_, size_,
                 Gather<From, To, T>{numbers, keys_.as<const From>(), values_.as<const T>(), Moves(plan.kept),
                                     copy_.keys.as<To>(), copy_.values.as<T>()});
        });
      });
    });
  }

  Device &device_;
  Staging &staging_;
  std::vector<i64> dims_;
  std::int32_t base_;
  IndexType index_type_;
  ValueType type_;
  i64 size_;
  Array flag_;
  std::vector<Array> columns_;
  Array values_;
  int key_bytes_ = 8;
  Array keys_;
  Copy copy_;
};

/// At the worst moment, with some room for CUB: sorting keys, or one copy beside packed keys.
i64 bytes_needed(const EntriesView &e) {
  const i64 value = size_of(e.value_type);
  const i64 caller = e.order() * size_of(e.index_type) + value;
  const i64 sorting = 2 * (16 + value) + 8;
  const i64 copying = (16 + value) + (16 + value) + 2 * (8 + 4) + 16 + 8;
  return (std::max({caller + 16, sorting, copying}) + 8) * e.nnz + (i64{64} << 20);
}

} // namespace

std::unique_ptr<Building> begin_building(Device &device, Staging &staging, const EntriesView &entries) {
  constexpr i64 most_entries = (i64{1} << 31) - 1; // their numbers take 4 bytes
  if (entries.nnz == 0 || entries.nnz > most_entries || bytes_needed(entries) > device.free_bytes())
    return nullptr;
  return std::make_unique<CudaBuilding>(device, staging, entries);
}

} // namespace td::kernels::cuda
