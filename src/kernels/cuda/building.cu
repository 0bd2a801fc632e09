// Building a sparse tensor on the GPU. What is sorted are keys with their values (CUB's stable radix sort), or, for the
// copies, places of rows with the entries' numbers: few bits, and the entries themselves are moved once.
#include "kernels/cuda/building.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "kernels/cuda/building_entries.cuh"
#include "kernels/cuda/device_arrays.hpp"

namespace td::kernels::cuda {

namespace {

constexpr const char *what = while_building;

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
  void give_to(CudaArrays &arrays, i64 bytes) {
    arrays.take(data_, bytes);
    data_ = nullptr;
  }

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
      columns_.push_back(given(e.indices[m], e.nnz * size_of(e.index_type)));
    values_ = given(e.values, e.nnz * size_of(e.value_type));
  }

  i64 size() const noexcept override { return size_; }

  i64 first_outside() override {
    const CurrentDevice current(device_.ordinal());
    begin_search();
    for (std::size_t m = 0; m < columns_.size(); ++m)
      with_index([&](auto zero) {
        using Index = decltype(zero);
        search(IsOutside<Index>{columns_[m].template as<Index>(), static_cast<u64>(dims_[m]), static_cast<u64>(base_)});
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
             MarkRow<Index>{columns_[static_cast<std::size_t>(mode)].template as<Index>(), base_,
                            marks.as<unsigned long long>()});
    });
    device_.download(words, marks.as<void>(), count * 8);
  }

  void encode(int key_bytes, std::span<const std::vector<BitMove>> moves,
              std::span<const RowNumbers> numbers) override {
    const CurrentDevice current(device_.ordinal());
    Array keys(device_, size_ * key_bytes);
    with_packed_key(key_bytes, [&](auto key) {
      with_index([&](auto zero) {
        using Key = decltype(key);
        using Index = decltype(zero);
        std::vector<Array> lists;
        std::vector<Placed<Key>> tables;
        Encode<Index, Key> encode{static_cast<int>(columns_.size()), base_, {}, keys.as<Key>()};
        for (std::size_t m = 0; m < columns_.size(); ++m) {
          const auto *words = lists.emplace_back(uploaded(numbers[m].words, numbers[m].count * 8)).template as<u64>();
          const auto *before = lists.emplace_back(uploaded(numbers[m].before, numbers[m].count * 8)).template as<i64>();
          tables.push_back(placed<Key>(moves[m]));
          encode.modes[m] = {columns_[m].template as<Index>(), {words, before}, tables.back().view()};
        }
        launch(device_, size_, encode);
      });
    });
    columns_.clear();
    keys_ = std::move(keys);
    key_bytes_ = key_bytes;
    key_bits_ = 1;
    for (const auto &of_mode : moves)
      for (const BitMove &move : of_mode)
        key_bits_ = std::max(key_bits_, move.to + move.count);
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
        sort_pairs(keys_.as<const Key>(), keys.as<Key>(), values_.template as<T>(), values.as<T>(), key_bits_);
      });
    });
    keys_ = std::move(keys);
    values_ = Values(std::move(values));
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
    with_packed_key(key_bytes_, [&](auto key) {
      dispatch(type_, [&](auto zero) {
        using Key = decltype(key);
        using T = decltype(zero);
        const Array begins(device_, size_ * 4);
        const i64 runs = select(Starts<Key>{keys_.as<const Key>(), ~Key{0}}, begins.as<std::uint32_t>());
        Array kept(device_, runs * static_cast<i64>(sizeof(Key)));
        Array sums(device_, runs * static_cast<i64>(sizeof(T)));
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
      sum_stretches<<<static_cast<unsigned>((blocks + warp - 1) / warp), warp, 0, device_.stream()>>>(
          values_.template as<T>(), size_, block, blocks, scale, all.as<ValueSums>());
      check_launch(what);
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

  Copy make_copy(const CopyPlan &plan) override {
    const CurrentDevice current(device_.ordinal());
    return plan.tiles * plan.dim <= i64{1} << 32 ? make_copy_in_places<std::uint32_t>(plan)
                                                 : make_copy_in_places<u64>(plan);
  }

  std::shared_ptr<const DeviceArrays> take_entries() override {
    auto arrays = std::make_shared<CudaArrays>(device_);
    keys_.give_to(*arrays, size_ * key_bytes_);
    values_.own.give_to(*arrays, size_ * size_of(type_));
    return arrays;
  }

private:
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
    return here || found.type == cudaMemoryTypeManaged ? Values(array) : Values(uploaded(array, bytes));
  }

  Array uploaded(const void *host, i64 bytes) {
    if (host == nullptr || bytes == 0)
      return {};
    Array array(device_, bytes);
    staging_.upload(array.as<void>(), host, bytes);
    return array;
  }

  std::vector<i64> downloaded(const i64 *list, i64 count) {
    std::vector<i64> to(static_cast<std::size_t>(count));
    device_.download(to.data(), list, count * 8);
    return to;
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
      search(IsNotFinite<T>{values_.template as<T>()});
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

  /// Writes all entries with starts(k); gives how many.
  template <class F> i64 select(F starts, std::uint32_t *entries) {
    const Scratch<i64> count(device_, 1, what);
    std::size_t bytes = 0;
    const auto run = [&](void *memory) {
      return cub::DeviceSelect::If(memory, bytes, thrust::counting_iterator<std::uint32_t>(0), entries, count.data(),
                                   size_, starts, device_.stream());
    };
    check(run(nullptr), what);
    {
      const Scratch<char> memory(device_, static_cast<i64>(bytes), what);
      check(run(memory.data()), what);
    }
    i64 some = 0;
    device_.download(&some, count.data(), sizeof some);
    return some;
  }

  /// begins := all entries with starts(k), then size(); gives how many there are without that.
  template <class F> i64 find_runs(F starts, Array &begins) {
    const Array all(device_, size_ * 4);
    const i64 runs = select(starts, all.as<std::uint32_t>());
    begins = Array(device_, (runs + 1) * 8);
    launch(device_, runs + 1, Widen{all.as<const std::uint32_t>(), runs, size_, begins.as<i64>()});
    return runs;
  }

  template <class Place> Copy make_copy_in_places(const CopyPlan &plan) {
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
    Array keys(device_, size_ * plan.key_bytes);
    Array values(device_, size_ * size_of(type_));
    gather(plan, number.as<const std::uint32_t>(), keys, values);
    number = Array();
    const auto *places = place.as<const Place>();
    Array row_begin;
    const i64 rows = find_runs(Starts<Place>{places, static_cast<Place>(~Place{0})}, row_begin);
    Array row_index(device_, rows * 8);
    const auto *begin = row_begin.as<const i64>();
    launch(device_, rows, RowIndex<Place>{places, begin, plan.dim, row_at.as<const i64>(), row_index.as<i64>()});
    const i64 tiles = plan.tiles;
    const Array lists(device_, (3 * tiles + 1) * 8);
    i64 *tile_begin = lists.as<i64>();
    launch(device_, tiles + 1,
           TileLists<Place>{places, begin, rows, plan.dim, tiles, plan.heavy, tile_begin, tile_begin + tiles + 1,
                            tile_begin + 2 * tiles + 1});
    Copy copy{nullptr, downloaded(tile_begin, tiles + 1), downloaded(tile_begin + tiles + 1, tiles),
              downloaded(tile_begin + 2 * tiles + 1, tiles)};
    auto arrays = std::make_shared<CudaArrays>(device_); // nothing works on them any more
    keys.give_to(*arrays, size_ * plan.key_bytes);
    values.give_to(*arrays, size_ * size_of(type_));
    row_index.give_to(*arrays, rows * 8);
    row_begin.give_to(*arrays, (rows + 1) * 8);
    copy.arrays = std::move(arrays);
    return copy;
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
  void gather(const CopyPlan &plan, const std::uint32_t *numbers, const Array &keys_out, const Array &values_out) {
    with_packed_key(key_bytes_, [&](auto from) {
      with_key(plan.key_bytes, [&](auto to) {
        dispatch(type_, [&](auto zero) {
          using From = decltype(from);
          using To = decltype(to);
          using T = decltype(zero);
          launch(device_, size_,
                 Gather<From, To, T>{numbers, keys_.as<const From>(), values_.template as<T>(), Moves(plan.kept),
                                     keys_out.as<To>(), values_out.as<T>()});
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
  std::vector<Values> columns_;
  Values values_;
  int key_bytes_ = 8;
  int key_bits_ = 64; // that encode() sets
  Array keys_;
};

} // namespace

i64 bytes_to_build(const EntriesView &e) {
  int bits = 0;
  for (const i64 dim : e.dims)
    bits += std::bit_width(static_cast<u64>(dim - 1));
  const i64 value = size_of(e.value_type);
  const i64 entry = (bits <= 64 ? 8 : 16) + value;
  const i64 encoding = e.order() * size_of(e.index_type) + entry;
  const i64 sorting = 3 * entry; // which CUB does from one place to another by way of a third
  const i64 places = 3 * (8 + 4);
  const i64 copy = entry + 12 + 4 + 16; // as places are let go
  const i64 copying = entry + std::max(places, copy);
  return (std::max({encoding, sorting, copying}) + 8) * e.nnz + (i64{64} << 20);
}

std::unique_ptr<Building> begin_building(Device &device, Staging &staging, const EntriesView &entries) {
  return std::make_unique<CudaBuilding>(device, staging, entries);
}

} // namespace td::kernels::cuda
