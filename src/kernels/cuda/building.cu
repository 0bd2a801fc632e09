// Building a sparse tensor on the GPU, up to the packed entries in linearized order: keys with their values are sorted
// by CUB's stable radix sort.
#include "kernels/cuda/building.hpp"

#include <algorithm>
#include <bit>

#include <thrust/execution_policy.h>
#include <thrust/merge.h>

#include "kernels/cuda/building_tools.cuh"

namespace td::kernels::cuda {

namespace {

constexpr const char *what = while_building;
constexpr int bits_of_pass = 8; // of CUB's sort
constexpr i64 copy_word = 8;    // unless tiles have more than 2^32 rows together

// Entries that are sorted while others come: so many that the GPU is busy, in so many slices that little is left to do
// when the last one has come. They are a power of two, so that two that are merged went as far as each other.
constexpr i64 least_slice = i64{1} << 20;
constexpr i64 most_slices = 16;
i64 slices_of(i64 entries) {
  return std::min(most_slices,
                  static_cast<i64>(std::bit_floor(static_cast<u64>(std::max<i64>(1, entries / least_slice)))));
}

/// Bytes of a key.
i64 key_of(const EntriesView &e) {
  int bits = 0;
  for (const i64 dim : e.dims)
    bits += std::bit_width(static_cast<u64>(dim - 1));
  return bits <= 64 ? 8 : 16;
}

/// Entries that one of several devices may come to have: their loads are not quite equal.
i64 most_entries(const EntriesView &e, bool together) { return together ? e.nnz + e.nnz / 16 : e.nnz; }

struct Units {
  i64 count;
  i64 bytes; // of each: 4 an entry
};

/// What steps take at the worst moment, but for the copies that stay.
Units units_of(const EntriesView &e, bool together) {
  const i64 entry = (key_of(e) + size_of(e.value_type)) / 4;
  const i64 encoding = e.order() * size_of(e.index_type) / 4 + 2 * entry; // from one place to another and back
  const i64 merging = 2 * entry + 1;                                      // where runs begin
  const i64 copying = entry + 2 * copy_word / 4 + 1;
  const i64 exchanging = together ? 3 * entry + 2 : 0; // all, those dealt to owners, and those that come
  return {std::max({encoding, merging, copying, exchanging}), (4 * most_entries(e, together) + 255) / 256 * 256};
}

std::shared_ptr<Workspace> make_workspace(Gpu &device, const EntriesView &e, bool together) {
  const Units units = units_of(e, together);
  return std::make_shared<Workspace>(device, units.count, units.bytes);
}

/// What thrust takes memory from.
struct PoolMemory {
  using value_type = char;
  Gpu *device;
  char *allocate(std::ptrdiff_t bytes) const {
    return static_cast<char *>(device->allocate(static_cast<i64>(bytes), what));
  }
  void deallocate(char *memory, std::size_t) const noexcept { device->release(memory); }
};

class CudaBuilding final : public DeviceBuilding {
public:
  CudaBuilding(Gpu &device, Staging &staging, const EntriesView &e, bool together, const KeyMoves *keys)
      : device_(device), staging_(staging), dims_(e.dims.begin(), e.dims.end()), base_(e.index_base),
        index_type_(e.index_type), type_(e.value_type), size_(e.nnz), workspace_(make_workspace(device, e, together)),
        flags_(*workspace_, 2 * sizeof(u64)) {
    if (keys != nullptr && slices_of(size_) > 1 && is_pageable(e)) {
      sort_as_they_come(e, *keys);
      return;
    }
    for (int m = 0; m < e.order(); ++m)
      columns_.push_back(given(e.indices[m], e.nnz * size_of(e.index_type)));
    values_ = given(e.values, e.nnz * size_of(e.value_type));
  }

  /// It has room for so many packed entries.
  CudaBuilding(const CudaBuilding &others, i64 size)
      : device_(others.device_), staging_(others.staging_), base_(others.base_), index_type_(others.index_type_),
        type_(others.type_), size_(size), workspace_(others.workspace_), flags_(*workspace_, 2 * sizeof(u64)),
        values_(Array(*workspace_, size * size_of(type_))), key_bytes_(others.key_bytes_), key_bits_(others.key_bits_),
        keys_(*workspace_, size * key_bytes_) {}

  /// The caller's arrays may be read until then.
  ~CudaBuilding() override {
    if (const CurrentDevice current = device_.memory().enter(std::nothrow); current)
      cudaStreamSynchronize(device_.stream());
  }

  i64 size() const noexcept override { return size_; }

  i64 first_outside() override {
    const CurrentDevice current = device_.memory().enter();
    if (!came_sorted_) {
      begin_search(outside);
      search_outside({0, size_});
    }
    return found(outside);
  }

  i64 first_not_finite() override {
    const CurrentDevice current = device_.memory().enter();
    if (!came_sorted_) {
      begin_search(bad);
      search_not_finite({0, size_});
    }
    return found(bad);
  }

  void mark_rows(int mode, u64 *words) override {
    const CurrentDevice current = device_.memory().enter();
    const i64 count = dims_[static_cast<std::size_t>(mode)] / 64 + 1;
    const Array marks(*workspace_, count * 8);
    check(cudaMemsetAsync(marks.as<void>(), 0, static_cast<std::size_t>(count) * 8, device_.stream()), what);
    with_index([&](auto zero) {
      using Index = decltype(zero);
      launch(device_, size_,
             MarkRow<Index>{columns_[static_cast<std::size_t>(mode)].template as<Index>(), base_,
                            marks.as<unsigned long long>()});
    });
    device_.download(words, marks.as<void>(), count * 8);
  }

  void encode(const KeyMoves &keys, std::span<const RowNumbers> numbers) override {
    if (came_sorted_)
      return;
    const CurrentDevice current = device_.memory().enter();
    Array made(*workspace_, size_ * keys.bytes);
    with_encoding(keys, numbers, made, [&](auto &&encode) { encode({0, size_}); });
    columns_.clear();
    keys_ = std::move(made);
    key_bytes_ = keys.bytes;
    key_bits_ = bits_set(keys.moves);
  }

  void sort() override {
    if (!came_sorted_)
      sort_by(0, key_bits_);
  }

  void sort_by(int shift, int bits) override {
    const CurrentDevice current = device_.memory().enter();
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) { sort_as<decltype(key), decltype(zero)>(shift, shift + bits); });
    });
  }

  void merge_runs(std::span<const i64> begin) override {
    const CurrentDevice current = device_.memory().enter();
    std::vector<i64> runs(begin.begin(), begin.end());
    runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
    if (runs.size() <= 2)
      return;
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        using Key = decltype(key);
        using T = decltype(zero);
        Sides<Key, T> sides(*this);
        for (int side = 0; runs.size() > 2; side = 1 - side) {
          std::vector<i64> merged{0};
          for (std::size_t k = 0; k + 1 < runs.size(); k += 2) {
            const i64 end = runs[std::min(k + 2, runs.size() - 1)];
            sides.merge(side, runs[k], runs[k + 1], end);
            merged.push_back(end);
          }
          runs = std::move(merged);
          sides.keep(1 - side);
        }
      });
    });
  }

  std::vector<i64> first_at(int shift, std::span<const i64> fields) override {
    const CurrentDevice current = device_.memory().enter();
    const Array wanted = on_gpu(fields.data(), static_cast<i64>(fields.size_bytes()));
    const Array found(*workspace_, std::ssize(fields) * 8);
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      launch(device_, std::ssize(fields),
             FindFirst<Key>{keys_.as<const Key>(), size_, shift, wanted.as<const i64>(), found.as<i64>()});
    });
    std::vector<i64> first(fields.size());
    device_.download(first.data(), found.as<void>(), std::ssize(fields) * 8);
    return first;
  }

  KeysAndValues here() override { return {keys_.as<void>(), key_bytes_, values_.own.as<void>(), type_}; }

  std::unique_ptr<DeviceBuilding> beside(i64 size) override {
    const CurrentDevice current = device_.memory().enter();
    return std::make_unique<CudaBuilding>(*this, size);
  }

  void arrived() override {}

  std::unique_ptr<DeviceBuilding> with_fields(int shift, int bits, std::span<const Range> fields) override {
    const CurrentDevice current = device_.memory().enter();
    const Array bounds = on_gpu(fields.data(), static_cast<i64>(fields.size_bytes()));
    const Array entries(*workspace_, size_ * 4);
    std::unique_ptr<CudaBuilding> some;
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        using Key = decltype(key);
        using T = decltype(zero);
        const HasField<Key> wanted{{keys_.as<const Key>(), shift, bits},
                                   {bounds.as<const i64>(), 2 * static_cast<int>(fields.size())}};
        some = std::make_unique<CudaBuilding>(*this, select(device_, size_, wanted, entries.as<std::uint32_t>()));
        take<Key, T>(entries.as<const std::uint32_t>(), some->size_, *some, 0);
      });
    });
    return some;
  }

  std::unique_ptr<Dealt> deal(int shift, int bits, std::span<const std::vector<Range>> owned) override {
    const CurrentDevice current = device_.memory().enter();
    return std::make_unique<CudaDealt>(*this, shift, bits, owned);
  }

  i64 first_repeat() override {
    const CurrentDevice current = device_.memory().enter();
    return find_repeat();
  }

  i64 merge() override {
    const CurrentDevice current = device_.memory().enter();
    if (find_repeat() < 0)
      return -1;
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        using Key = decltype(key);
        using T = decltype(zero);
        const Array begins(*workspace_, size_ * 4);
        const i64 runs =
            select(device_, size_, Starts<Key>{keys_.as<const Key>(), ~Key{0}}, begins.as<std::uint32_t>());
        Array kept(*workspace_, runs * static_cast<i64>(sizeof(Key)));
        Array sums(*workspace_, runs * static_cast<i64>(sizeof(T)));
        begin_search(bad);
        launch(device_, runs,
               SumRun<Key, T>{keys_.as<const Key>(), values_.template as<T>(), begins.as<const std::uint32_t>(), runs,
                              size_, kept.as<Key>(), sums.as<T>(), flag(bad)});
        keys_ = std::move(kept);
        values_ = Values(std::move(sums));
        size_ = runs;
      });
    });
    return found(bad);
  }

  std::vector<u128> keys(std::span<const i64> entries) override {
    const CurrentDevice current = device_.memory().enter();
    std::vector<u128> some(entries.size());
    const Array where = on_gpu(entries.data(), static_cast<i64>(entries.size_bytes()));
    const Array wide(*workspace_, std::ssize(some) * 16);
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      launch(device_, std::ssize(some), TakeKey<Key>{keys_.as<const Key>(), where.as<const i64>(), wide.as<u128>()});
    });
    device_.download(some.data(), wide.as<void>(), std::ssize(some) * 16);
    return some;
  }

  void recode(int key_bytes, std::span<const BitMove> moves) override {
    const CurrentDevice current = device_.memory().enter();
    const bool in_place = key_bytes == key_bytes_;
    Array others(*workspace_, in_place ? 0 : size_ * key_bytes);
    with_packed_key(key_bytes_, [&](auto from) {
      with_packed_key(key_bytes, [&](auto to) {
        using From = decltype(from);
        using To = decltype(to);
        const std::vector<To> results = results_of<To>(moves);
        const Array tables = on_gpu(results.data(), std::ssize(results) * static_cast<i64>(sizeof(To)));
        launch(device_, size_,
               Recode<From, To>{keys_.as<const From>(),
                                {tables.as<const To>(), static_cast<int>(results.size() / 256)},
                                (in_place ? keys_ : others).template as<To>()});
      });
    });
    if (!in_place)
      keys_ = std::move(others);
    key_bytes_ = key_bytes;
  }

  std::vector<i64> runs(u128 mask) override {
    const CurrentDevice current = device_.memory().enter();
    const Array begins(*workspace_, size_ * 4);
    i64 count = 0;
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      count = select(device_, size_, Starts<Key>{keys_.as<const Key>(), static_cast<Key>(mask)},
                     begins.as<std::uint32_t>());
    });
    std::vector<std::uint32_t> narrow(static_cast<std::size_t>(count));
    device_.download(narrow.data(), begins.as<void>(), count * 4);
    std::vector<i64> all(narrow.begin(), narrow.end());
    all.push_back(size_);
    return all;
  }

  void sum_values(double scale, i64 block, Range entries, ValueSums *sums) override {
    const CurrentDevice current = device_.memory().enter();
    const i64 blocks = (entries.size() + block - 1) / block;
    const Array all(*workspace_, blocks * static_cast<i64>(sizeof(ValueSums)));
    dispatch(type_, [&](auto zero) {
      using T = decltype(zero);
      sum_blocks<<<static_cast<unsigned>((blocks + warp - 1) / warp), warp, 0, device_.stream()>>>(
          values_.template as<T>() + entries.begin, entries.size(), block, blocks, scale, all.as<ValueSums>());
      check_launch(what);
    });
    device_.download(sums, all.as<void>(), blocks * static_cast<i64>(sizeof(ValueSums)));
  }

  void count_fields(int shift, int bits, std::span<i64> counts) override {
    const CurrentDevice current = device_.memory().enter();
    const i64 count = std::ssize(counts);
    const Array all(*workspace_, count * 8);
    check(cudaMemsetAsync(all.as<void>(), 0, static_cast<std::size_t>(count) * 8, device_.stream()), what);
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      const Field<Key> field{keys_.as<const Key>(), shift, bits};
      auto *const counters = all.as<unsigned long long>();
      const i64 most = device_.chip().shared_bytes;
      const i64 bytes = count * 4;
      if (bytes > most)
        return launch(device_, size_, CountField<Key>{field, counters});
      allow_shared(histogram<Key>, most);
      const int blocks = (2 * bytes > most ? 1 : 2) * device_.multiprocessors();
      histogram<<<static_cast<unsigned>(blocks), histogram_threads, static_cast<std::size_t>(bytes),
                  device_.stream()>>>(size_, static_cast<int>(count), field, counters);
      check_launch(what);
    });
    device_.download(counts.data(), all.as<void>(), count * 8);
  }

  Copy make_copy(const CopyPlan &plan) override {
    const CurrentDevice current = device_.memory().enter();
    return make_sorted_copy(*workspace_, staging_, {keys_.as<void>(), key_bytes_, values_.data, type_, size_}, plan);
  }

  std::shared_ptr<const DeviceArrays> take_entries() override {
    const CurrentDevice current = device_.memory().enter();
    auto arrays = std::make_shared<CudaArrays>(device_);
    const auto give = [&](const Array &array, i64 bytes) {
      void *memory = array.stay(bytes);
      arrays->take(memory, bytes);
      arrays->list(memory, bytes);
    };
    give(keys_, size_ * key_bytes_);
    give(values_.own, size_ * size_of(type_));
    device_.wait(); // whoever has them works on other streams, too
    return arrays;
  }

private:
  template <class F> void with_index(F &&f) const { dispatch(index_type_, f); }

  /// What the caller gave: a copy of it, or, if it is in this GPU's memory, itself.
  struct Values {
    Values() = default;
    explicit Values(Array array) : own(std::move(array)), data(own.as<void>()) {}
    explicit Values(const void *of_caller) : data(of_caller) {}
    template <class T> const T *as() const noexcept { return static_cast<const T *>(data); }
    Array own;
    const void *data = nullptr;
  };
  Values given(const void *array, i64 bytes) {
    cudaPointerAttributes found{};
    check(cudaPointerGetAttributes(&found, array), what);
    const bool here = found.type == cudaMemoryTypeDevice && found.device == device_.ordinal();
    return here || found.type == cudaMemoryTypeManaged ? Values(array) : Values(on_gpu(array, bytes));
  }

  Array on_gpu(const void *host, i64 bytes) { return uploaded(*workspace_, staging_, host, bytes); }

  // The first entry for which one of several conditions holds.

  enum Condition { outside, bad };
  unsigned long long *flag(Condition which) const { return flags_.as<unsigned long long>() + which; }
  void begin_search(Condition which) { check(cudaMemsetAsync(flag(which), 0xff, sizeof(u64), device_.stream()), what); }
  template <class Is> void search(Is is, Range entries, Condition which) {
    keep_first<<<blocks_for(device_, entries.size(), block_threads), block_threads, 0, device_.stream()>>>(
        entries.begin, entries.end, is, flag(which));
    check_launch(what);
  }
  void search_outside(Range entries) {
    for (std::size_t m = 0; m < columns_.size(); ++m)
      with_index([&](auto zero) {
        using Index = decltype(zero);
        search(IsOutside<Index>{columns_[m].template as<Index>(), static_cast<u64>(dims_[m]), static_cast<u64>(base_)},
               entries, outside);
      });
  }
  void search_not_finite(Range entries) {
    dispatch(type_, [&](auto zero) {
      using T = decltype(zero);
      search(IsNotFinite<T>{values_.template as<T>()}, entries, bad);
    });
  }
  i64 found(Condition which) {
    i64 first = -1;
    device_.download(&first, flag(which), sizeof first);
    return first; // all bits set: -1
  }

  i64 find_repeat() {
    begin_search(bad);
    with_packed_key(key_bytes_, [&](auto key) {
      using Key = decltype(key);
      search(Repeats<Key>{keys_.as<const Key>()}, {0, size_}, bad);
    });
    return found(bad);
  }

  /// Calls f with a function that gives some of the entries their keys.
  template <class F>
  void with_encoding(const KeyMoves &keys, std::span<const RowNumbers> numbers, const Array &made, F &&f) {
    with_packed_key(keys.bytes, [&](auto key) {
      with_index([&](auto zero) {
        using Key = decltype(key);
        using Index = decltype(zero);
        std::vector<Key> results;
        std::vector<std::ptrdiff_t> begin{0};
        for (const auto &of_mode : keys.moves) {
          const auto more = results_of<Key>(of_mode);
          results.insert(results.end(), more.begin(), more.end());
          begin.push_back(std::ssize(results));
        }
        const Array tables = on_gpu(results.data(), std::ssize(results) * static_cast<i64>(sizeof(Key)));
        std::vector<Array> lists;
        Encode<Index, Key> encode{static_cast<int>(columns_.size()), base_, {}, made.as<Key>()};
        for (std::size_t m = 0; m < columns_.size(); ++m) {
          const auto *words = lists.emplace_back(on_gpu(numbers[m].words, numbers[m].count * 8)).template as<u64>();
          const auto *before = lists.emplace_back(on_gpu(numbers[m].before, numbers[m].count * 8)).template as<i64>();
          encode.modes[m] = {columns_[m].template as<Index>(),
                             {words, before},
                             {tables.as<const Key>() + begin[m], static_cast<int>((begin[m + 1] - begin[m]) / 256)}};
        }
        f([&](Range entries) {
          Encode<Index, Key> some = encode;
          for (std::size_t m = 0; m < columns_.size(); ++m)
            some.modes[m].index += entries.begin;
          some.keys += entries.begin;
          launch(device_, entries.size(), some);
        });
      });
    });
  }

  static bool is_pageable(const EntriesView &e) {
    return Staging::is_pageable(e.values) && std::all_of(e.indices, e.indices + e.order(), [](const void *column) {
             return Staging::is_pageable(column);
           });
  }

  /// Slices of the caller's arrays, and where they go.
  std::vector<Staging::Group> slices(const EntriesView &e, i64 count) const {
    std::vector<Staging::Group> groups;
    for (i64 k = 0; k < count; ++k) {
      const Range some = part_of({0, size_}, k, count);
      Staging::Group &group = groups.emplace_back();
      const auto add = [&](const Values &to, const void *from, i64 bytes) {
        group.push_back({to.own.as<char>() + some.begin * bytes, static_cast<const char *>(from) + some.begin * bytes,
                         some.size() * bytes});
      };
      for (int m = 0; m < e.order(); ++m)
        add(columns_[static_cast<std::size_t>(m)], e.indices[m], size_of(e.index_type));
      add(values_, e.values, size_of(e.value_type));
    }
    return groups;
  }

  // Slices of entries are checked, get their keys, are sorted and are merged with those before while the next ones
  // come.
  void sort_as_they_come(const EntriesView &e, const KeyMoves &keys) {
    values_ = Values(Array(*workspace_, size_ * size_of(type_)));
    keys_ = Array(*workspace_, size_ * keys.bytes);
    key_bytes_ = keys.bytes;
    key_bits_ = bits_set(keys.moves);
    begin_search(outside);
    begin_search(bad);
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        Sides<decltype(key), decltype(zero)> sides(*this);
        for (int m = 0; m < e.order(); ++m)
          columns_.push_back(Values(Array(*workspace_, size_ * size_of(index_type_))));
        const i64 count = slices_of(size_);
        const auto slice = [&](i64 k) { return part_of({0, size_}, k, count); };
        const std::vector<RowNumbers> indices(columns_.size());
        with_encoding(keys, indices, keys_, [&](auto &&encode) {
          staging_.upload(slices(e, count), [&](std::size_t k) {
            const i64 come = static_cast<i64>(k) + 1;
            const Range some = slice(come - 1);
            search_outside(some);
            search_not_finite(some);
            encode(some);
            int side = sides.sort(some, 0, key_bits_);
            for (i64 both = 2; come % both == 0; both *= 2, side = 1 - side)
              sides.merge(side, slice(come - both).begin, slice(come - both / 2).begin, some.end);
            if (come == count)
              sides.keep(side);
          });
        });
      });
    });
    columns_.clear();
    came_sorted_ = true;
  }

  /// Places for keys and values: this object's, and others that they move to and from.
  template <class Key, class T> class Sides {
  public:
    explicit Sides(CudaBuilding &entries)
        : entries_(entries), others_{Array(*entries.workspace_, entries.size_ * static_cast<i64>(sizeof(Key))),
                                     Array(*entries.workspace_, entries.size_ * static_cast<i64>(sizeof(T)))} {}

    /// Sorts some that are on side 0 by some bits. Gives the side that they are on then.
    int sort(Range some, int begin, int end) {
      cub::DoubleBuffer<Key> keys(key(0) + some.begin, key(1) + some.begin);
      cub::DoubleBuffer<T> values(value(0) + some.begin, value(1) + some.begin);
      Gpu &device = entries_.device_;
      with_memory(device, [&](void *memory, std::size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, values, some.size(), begin, end, device.stream());
      });
      return keys.selector; // values are on the same side
    }

    /// Merges neighbours from a side to the other. Of equal keys those of the first come first.
    void merge(int side, i64 begin, i64 middle, i64 end) {
      const Key *keys = key(side);
      const T *values = value(side);
      thrust::merge_by_key(thrust::cuda::par_nosync(memory_).on(entries_.device_.stream()), keys + begin, keys + middle,
                           keys + middle, keys + end, values + begin, values + middle, key(1 - side) + begin,
                           value(1 - side) + begin);
    }

    /// All are on this side, which becomes side 0.
    void keep(int side) {
      if (side == 0)
        return;
      std::swap(entries_.keys_, others_.first);
      entries_.values_ = Values(std::exchange(others_.second, std::move(entries_.values_.own)));
    }

  private:
    Key *key(int side) const { return (side == 0 ? entries_.keys_ : others_.first).template as<Key>(); }
    T *value(int side) const { return (side == 0 ? entries_.values_.own : others_.second).template as<T>(); }

    CudaBuilding &entries_;
    std::pair<Array, Array> others_; // keys, values
    PoolMemory memory_{&entries_.device_};
  };

  /// Gives another some of these entries, as words number them, from its entry `first` on.
  template <class Key, class T, class Word> void take(const Word *words, i64 count, const CudaBuilding &to, i64 first) {
    launch(device_, count,
           TakeEntry<Key, T, Word>{keys_.as<const Key>(), values_.template as<T>(), words,
                                   to.keys_.template as<Key>() + first, to.values_.own.template as<T>() + first});
  }

  /// Words of owners and entries' numbers, sorted by owners.
  class CudaDealt final : public Dealt {
  public:
    CudaDealt(CudaBuilding &from, int shift, int bits, std::span<const std::vector<Range>> owned)
        : from_(from), words_(*from.workspace_, from.size_ * 8) {
      std::vector<std::pair<Range, std::uint32_t>> all;
      for (std::size_t owner = 0; owner < owned.size(); ++owner)
        for (const Range &range : owned[owner])
          if (range.size() > 0)
            all.emplace_back(range, static_cast<std::uint32_t>(owner));
      std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.first.begin < b.first.begin; });
      std::vector<i64> bounds;
      std::vector<std::uint32_t> owners;
      for (const auto &[range, owner] : all) {
        bounds.insert(bounds.end(), {range.begin, range.end});
        owners.push_back(owner);
      }
      const Array bounds_there = from.on_gpu(bounds.data(), std::ssize(bounds) * 8);
      const Array owners_there = from.on_gpu(owners.data(), std::ssize(owners) * 4);
      const Bounds ranges{bounds_there.as<const i64>(), static_cast<int>(bounds.size())};
      Array others(*from.workspace_, from.size_ * 8);
      cub::DoubleBuffer<u64> both(words_.as<u64>(), others.as<u64>());
      const u64 nobody = owned.size();
      with_packed_key(from.key_bytes_, [&](auto key) {
        using Key = decltype(key);
        launch(from.device_, from.size_,
               PutOwner<Key>{{from.keys_.as<const Key>(), shift, bits},
                             ranges,
                             owners_there.as<const std::uint32_t>(),
                             nobody,
                             both.Current()});
      });
      sort_words(from.device_, both, from.size_, std::bit_width(nobody));
      if (both.Current() == others.as<u64>())
        std::swap(words_, others);
      begin_.resize(owned.size() + 1);
      const Array begin(*from.workspace_, std::ssize(begin_) * 8);
      launch(from.device_, std::ssize(begin_), FindBegin{words_.as<u64>(), from.size_, begin.as<i64>()});
      from.device_.download(begin_.data(), begin.as<void>(), std::ssize(begin_) * 8);
    }

    std::unique_ptr<DeviceBuilding> take(Range entries) override {
      const CurrentDevice current = from_.device_.memory().enter();
      auto some = std::make_unique<CudaBuilding>(from_, entries.size());
      take_to(entries, *some, 0);
      return some;
    }
    void take(Range entries, DeviceBuilding &to, i64 first) override {
      const CurrentDevice current = from_.device_.memory().enter();
      take_to(entries, dynamic_cast<CudaBuilding &>(to), first);
    }

  private:
    void take_to(Range entries, const CudaBuilding &to, i64 first) {
      with_packed_key(from_.key_bytes_, [&](auto key) {
        dispatch(from_.type_, [&](auto zero) {
          from_.template take<decltype(key), decltype(zero)>(words_.as<const u64>() + entries.begin, entries.size(), to,
                                                             first);
        });
      });
    }
    CudaBuilding &from_;
    Array words_;
  };

  /// What a caller holds is only read, by a first pass of its own.
  template <class Key, class T> void sort_as(int begin, int end) {
    Sides<Key, T> sides(*this);
    if (values_.own.template as<T>() == nullptr) {
      const int done = std::min(begin + bits_of_pass, end);
      Array keys(*workspace_, size_ * key_bytes_), values(*workspace_, size_ * size_of(type_));
      with_memory(device_, [&](void *memory, std::size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(memory, bytes, keys_.as<const Key>(), keys.as<Key>(),
                                               values_.template as<T>(), values.as<T>(), size_, begin, done,
                                               device_.stream());
      });
      std::swap(keys_, keys);
      values_ = Values(std::move(values));
      begin = done;
    }
    if (begin < end)
      sides.keep(sides.sort({0, size_}, begin, end));
  }

  Gpu &device_;
  Staging &staging_;
  std::vector<i64> dims_;
  std::int32_t base_;
  IndexType index_type_;
  ValueType type_;
  i64 size_;
  std::shared_ptr<Workspace> workspace_;
  Array flags_;
  bool came_sorted_ = false; // with keys
  std::vector<Values> columns_;
  Values values_;
  int key_bytes_ = 8;
  int key_bits_ = 64; // that encode() sets
  Array keys_;
};

} // namespace

i64 bytes_to_build(const EntriesView &e, bool together) {
  const Units units = units_of(e, together);
  const i64 copy = (key_of(e) + size_of(e.value_type) + 16) * most_entries(e, together); // as many rows as entries
  const i64 of_cub = 2 * e.nnz; // a sort takes 0.2 bytes an entry
  return units.count * units.bytes + copy + of_cub + (i64{64} << 20);
}

std::unique_ptr<DeviceBuilding> begin_building(Gpu &device, Staging &staging, const EntriesView &entries, bool together,
                                               const KeyMoves *keys) {
  return std::make_unique<CudaBuilding>(device, staging, entries, together, keys);
}

} // namespace td::kernels::cuda
