// Building a sparse tensor on the GPU, up to the packed entries in linearized order: keys with their values are sorted
// by CUB's stable radix sort.
#include "kernels/cuda/building.hpp"

#include <algorithm>
#include <bit>

#include "kernels/cuda/building_tools.cuh"

namespace td::kernels::cuda {

namespace {

constexpr const char *what = while_building;
constexpr int bits_of_pass = 8; // of CUB's sort
constexpr i64 copy_word = 8;    // unless tiles have more than 2^32 rows together

class CudaBuilding final : public DeviceBuilding {
public:
  CudaBuilding(Gpu &device, Staging &staging, const EntriesView &e)
      : device_(device), staging_(staging), dims_(e.dims.begin(), e.dims.end()), base_(e.index_base),
        index_type_(e.index_type), type_(e.value_type), size_(e.nnz), spares_(std::make_shared<Spares>(device)),
        flag_(*spares_, sizeof(u64)) {
    for (int m = 0; m < e.order(); ++m)
      columns_.push_back(given(e.indices[m], e.nnz * size_of(e.index_type)));
    values_ = given(e.values, e.nnz * size_of(e.value_type));
  }

  /// It has room for so many packed entries.
  CudaBuilding(const CudaBuilding &others, i64 size)
      : device_(others.device_), staging_(others.staging_), base_(others.base_), index_type_(others.index_type_),
        type_(others.type_), size_(size), spares_(others.spares_), flag_(*spares_, sizeof(u64)),
        values_(Array(*spares_, size * size_of(type_))), key_bytes_(others.key_bytes_), key_bits_(others.key_bits_),
        keys_(*spares_, size * key_bytes_) {}

  /// The caller's arrays may be read until then.
  ~CudaBuilding() override {
    if (const CurrentDevice current = device_.memory().enter(std::nothrow); current)
      cudaStreamSynchronize(device_.stream());
  }

  i64 size() const noexcept override { return size_; }

  i64 first_outside() override {
    const CurrentDevice current = device_.memory().enter();
    begin_search();
    for (std::size_t m = 0; m < columns_.size(); ++m)
      with_index([&](auto zero) {
        using Index = decltype(zero);
        search(IsOutside<Index>{columns_[m].template as<Index>(), static_cast<u64>(dims_[m]), static_cast<u64>(base_)});
      });
    return found();
  }

  i64 first_not_finite() override {
    const CurrentDevice current = device_.memory().enter();
    begin_search();
    dispatch(type_, [&](auto zero) {
      using T = decltype(zero);
      search(IsNotFinite<T>{values_.template as<T>()});
    });
    return found();
  }

  void mark_rows(int mode, u64 *words) override {
    const CurrentDevice current = device_.memory().enter();
    const i64 count = dims_[static_cast<std::size_t>(mode)] / 64 + 1;
    const Array marks(*spares_, count * 8);
    check(cudaMemsetAsync(marks.as<void>(), 0, static_cast<std::size_t>(count) * 8, device_.stream()), what);
    with_index([&](auto zero) {
      using Index = decltype(zero);
      launch(device_, size_,
             MarkRow<Index>{columns_[static_cast<std::size_t>(mode)].template as<Index>(), base_,
                            marks.as<unsigned long long>()});
    });
    device_.download(words, marks.as<void>(), count * 8);
  }

  void encode(int key_bytes, std::span<const std::vector<BitMove>> moves,
              std::span<const RowNumbers> numbers) override {
    const CurrentDevice current = device_.memory().enter();
    Array keys(*spares_, size_ * key_bytes);
    with_packed_key(key_bytes, [&](auto key) {
      with_index([&](auto zero) {
        using Key = decltype(key);
        using Index = decltype(zero);
        std::vector<Key> results;
        std::vector<std::ptrdiff_t> begin{0};
        for (const auto &of_mode : moves) {
          const auto more = results_of<Key>(of_mode);
          results.insert(results.end(), more.begin(), more.end());
          begin.push_back(std::ssize(results));
        }
        const Array tables = on_gpu(results.data(), std::ssize(results) * static_cast<i64>(sizeof(Key)));
        std::vector<Array> lists;
        Encode<Index, Key> encode{static_cast<int>(columns_.size()), base_, {}, keys.as<Key>()};
        for (std::size_t m = 0; m < columns_.size(); ++m) {
          const auto *words = lists.emplace_back(on_gpu(numbers[m].words, numbers[m].count * 8)).template as<u64>();
          const auto *before = lists.emplace_back(on_gpu(numbers[m].before, numbers[m].count * 8)).template as<i64>();
          encode.modes[m] = {columns_[m].template as<Index>(),
                             {words, before},
                             {tables.as<const Key>() + begin[m], static_cast<int>((begin[m + 1] - begin[m]) / 256)}};
        }
        launch(device_, size_, encode);
      });
    });
    columns_.clear();
    spares_->trim();
    keys_ = std::move(keys);
    key_bytes_ = key_bytes;
    key_bits_ = bits_set(moves);
  }

  void sort() override { sort_by(0, key_bits_); }

  void sort_by(int shift, int bits) override {
    const CurrentDevice current = device_.memory().enter();
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) { sort_as<decltype(key), decltype(zero)>(shift, shift + bits); });
    });
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
    const Array entries(*spares_, size_ * 4);
    std::unique_ptr<CudaBuilding> some;
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        using Key = decltype(key);
        using T = decltype(zero);
        const HasField<Key> wanted{{keys_.as<const Key>(), shift, bits},
                                   {bounds.as<const i64>(), 2 * static_cast<int>(fields.size())}};
        some = std::make_unique<CudaBuilding>(*this, select(device_, size_, wanted, entries.as<std::uint32_t>()));
        take<Key, T>(entries.as<const std::uint32_t>(), *some);
      });
    });
    return some;
  }

  Dealt deal(int shift, int bits, std::span<const std::vector<Range>> owned) override {
    const CurrentDevice current = device_.memory().enter();
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
    const Array bounds_there = on_gpu(bounds.data(), std::ssize(bounds) * 8);
    const Array owners_there = on_gpu(owners.data(), std::ssize(owners) * 4);
    const Bounds ranges{bounds_there.as<const i64>(), static_cast<int>(bounds.size())};
    const Array words(*spares_, size_ * 8), others(*spares_, size_ * 8);
    cub::DoubleBuffer<u64> both(words.as<u64>(), others.as<u64>());
    const u64 nobody = owned.size();
    Dealt dealt;
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        using Key = decltype(key);
        launch(device_, size_,
               PutOwner<Key>{{keys_.as<const Key>(), shift, bits},
                             ranges,
                             owners_there.as<const std::uint32_t>(),
                             nobody,
                             both.Current()});
        sort_words(device_, both, size_, std::bit_width(nobody));
        dealt.begin.resize(owned.size() + 1);
        const Array begin(*spares_, std::ssize(dealt.begin) * 8);
        launch(device_, std::ssize(dealt.begin), FindBegin{both.Current(), size_, begin.as<i64>()});
        device_.download(dealt.begin.data(), begin.as<void>(), std::ssize(dealt.begin) * 8);
        auto some = std::make_unique<CudaBuilding>(*this, dealt.begin.back());
        take<Key, decltype(zero)>(both.Current(), *some);
        dealt.entries = std::move(some);
      });
    });
    return dealt;
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
        const Array begins(*spares_, size_ * 4);
        const i64 runs =
            select(device_, size_, Starts<Key>{keys_.as<const Key>(), ~Key{0}}, begins.as<std::uint32_t>());
        Array kept(*spares_, runs * static_cast<i64>(sizeof(Key)));
        Array sums(*spares_, runs * static_cast<i64>(sizeof(T)));
        begin_search();
        launch(device_, runs,
               SumRun<Key, T>{keys_.as<const Key>(), values_.template as<T>(), begins.as<const std::uint32_t>(), runs,
                              size_, kept.as<Key>(), sums.as<T>(), flag_.as<unsigned long long>()});
        keys_ = std::move(kept);
        values_ = Values(std::move(sums));
        size_ = runs;
      });
    });
    return found();
  }

  std::vector<u128> keys(std::span<const i64> entries) override {
    const CurrentDevice current = device_.memory().enter();
    std::vector<u128> some(entries.size());
    const Array where = on_gpu(entries.data(), static_cast<i64>(entries.size_bytes()));
    const Array wide(*spares_, std::ssize(some) * 16);
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
    Array others(*spares_, in_place ? 0 : size_ * key_bytes);
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
    const Array begins(*spares_, size_ * 4);
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
    const Array all(*spares_, blocks * static_cast<i64>(sizeof(ValueSums)));
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
    const Array all(*spares_, count * 8);
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
    return make_sorted_copy(*spares_, staging_, {keys_.as<void>(), key_bytes_, values_.data, type_, size_}, plan);
  }

  std::shared_ptr<const DeviceArrays> take_entries() override {
    const CurrentDevice current = device_.memory().enter();
    auto arrays = std::make_shared<CudaArrays>(device_);
    const auto give = [&](Array &array, i64 bytes) {
      void *memory = array.give(bytes);
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

  Array on_gpu(const void *host, i64 bytes) { return uploaded(*spares_, staging_, host, bytes); }

  // The first entry for which one of several conditions holds.

  void begin_search() { check(cudaMemsetAsync(flag_.as<void>(), 0xff, sizeof(u64), device_.stream()), what); }
  template <class Bad> void search(Bad bad) {
    keep_first<<<blocks_for(device_, size_, block_threads), block_threads, 0, device_.stream()>>>(
        size_, bad, flag_.as<unsigned long long>());
    check_launch(what);
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

  /// Gives another so many of these entries as it has room for, as words number them.
  template <class Key, class T, class Word> void take(const Word *words, const CudaBuilding &to) {
    launch(device_, to.size_,
           TakeEntry<Key, T, Word>{keys_.as<const Key>(), values_.template as<T>(), words, to.keys_.template as<Key>(),
                                   to.values_.own.template as<T>()});
  }

  /// Keys and values move from one place to another and back, once a pass. What a caller holds is only read, by a first
  /// pass of its own.
  template <class Key, class T> void sort_as(int begin, int end) {
    const i64 bytes_of_values = size_ * size_of(type_);
    Array keys(*spares_, size_ * key_bytes_);
    Array values(*spares_, bytes_of_values);
    const auto sort_bits = [&](int begin, int end, auto &&...arrays) {
      with_memory(device_, [&](void *memory, std::size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(memory, bytes, arrays..., size_, begin, end, device_.stream());
      });
    };
    int done = begin;
    if (values_.own.template as<T>() == nullptr) {
      done = std::min(begin + bits_of_pass, end);
      sort_bits(begin, done, keys_.as<const Key>(), keys.as<Key>(), values_.template as<T>(), values.as<T>());
      std::swap(keys_, keys);
      values_ = Values(std::exchange(values, Array(*spares_, bytes_of_values)));
    }
    cub::DoubleBuffer<Key> both_keys(keys_.as<Key>(), keys.as<Key>());
    cub::DoubleBuffer<T> both_values(values_.own.template as<T>(), values.as<T>());
    if (done < end)
      sort_bits(done, end, both_keys, both_values);
    if (both_keys.Current() == keys.as<Key>())
      std::swap(keys_, keys);
    if (both_values.Current() == values.as<T>())
      values_ = Values(std::move(values));
  }

  Gpu &device_;
  Staging &staging_;
  std::vector<i64> dims_;
  std::int32_t base_;
  IndexType index_type_;
  ValueType type_;
  i64 size_;
  std::shared_ptr<Spares> spares_;
  Array flag_;
  std::vector<Values> columns_;
  Values values_;
  int key_bytes_ = 8;
  int key_bits_ = 64; // that encode() sets
  Array keys_;
};

} // namespace

i64 bytes_to_build(const EntriesView &e, bool together) {
  int bits = 0;
  for (const i64 dim : e.dims)
    bits += std::bit_width(static_cast<u64>(dim - 1));
  const i64 key = bits <= 64 ? 8 : 16;
  const i64 value = size_of(e.value_type);
  const i64 entry = key + value;
  const i64 encoding = e.order() * size_of(e.index_type) + entry;
  const i64 more = value < copy_word ? copy_word : 0; // one of a copy's two words takes the place of a key
  const i64 working = 2 * entry + 4 + more;           // from one place to another and back; where runs begin
  const i64 copy = entry + 16;                        // that stays, with as many rows as entries
  // The packed entries beside those that have come for a copy; and rows cannot be partitioned quite evenly.
  const i64 exchanged = together ? entry + (working + copy) / 8 : 0;
  return (std::max(encoding, working + copy + exchanged) + 8) * e.nnz + (i64{64} << 20);
}

std::unique_ptr<DeviceBuilding> begin_building(Gpu &device, Staging &staging, const EntriesView &entries) {
  return std::make_unique<CudaBuilding>(device, staging, entries);
}

} // namespace td::kernels::cuda
