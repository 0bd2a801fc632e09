#include "software/building.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/error.hpp"

namespace td::software {

namespace {

using kernels::BitMove;
using kernels::Copy;
using kernels::CopyPlan;
using kernels::Dealt;
using kernels::DeviceArrays;
using kernels::DeviceBuilding;
using kernels::RowNumbers;
using kernels::ValueSums;

u128 low_bits(int count) { return count >= 128 ? ~u128{0} : (u128{1} << count) - 1; }

u128 moved(std::span<const BitMove> moves, u128 from) {
  u128 to = 0;
  for (const BitMove &m : moves)
    to |= (from >> m.from & low_bits(m.count)) << m.to;
  return to;
}

void write_key(void *keys, int key_bytes, std::size_t k, u128 key) {
  std::memcpy(static_cast<std::byte *>(keys) + k * static_cast<std::size_t>(key_bytes), &key,
              static_cast<std::size_t>(key_bytes)); // of a little-endian machine, as all that td runs on
}

class HostArrays final : public DeviceArrays {
public:
  explicit HostArrays(std::vector<std::vector<std::byte>> arrays) : arrays_(std::move(arrays)) {}
  std::vector<Array> arrays() const override {
    std::vector<Array> all;
    for (const auto &array : arrays_)
      all.push_back({array.data(), std::ssize(array)});
    return all;
  }
  void download(std::span<void *const> to_host) const override {
    for (std::size_t k = 0; k < to_host.size(); ++k)
      if (to_host[k] != nullptr)
        std::copy(arrays_[k].begin(), arrays_[k].end(), static_cast<std::byte *>(to_host[k]));
  }

private:
  std::vector<std::vector<std::byte>> arrays_;
};

std::vector<std::byte> bytes_of(const std::vector<i64> &numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

class SerialBuilding final : public DeviceBuilding {
public:
  SerialBuilding(BuildingBackend &backend, const EntriesView &e)
      : backend_(backend), dims_(e.dims.begin(), e.dims.end()), type_(e.value_type) {
    dispatch(e.index_type, [&](auto zero) {
      for (int m = 0; m < e.order(); ++m) {
        const auto *index = static_cast<const decltype(zero) *>(e.indices[m]);
        auto &column = columns_.emplace_back();
        for (i64 k = 0; k < e.nnz; ++k)
          column.push_back(static_cast<i64>(index[k]) - e.index_base);
      }
    });
    dispatch(type_, [&](auto zero) {
      const auto *values = static_cast<const decltype(zero) *>(e.values);
      for (i64 k = 0; k < e.nnz; ++k)
        values_.push_back(static_cast<double>(values[k]));
    });
  }

  SerialBuilding(const SerialBuilding &others, i64 size)
      : backend_(others.backend_), type_(others.type_), values_(static_cast<std::size_t>(size)),
        key_bytes_(others.key_bytes_), keys_(values_.size()) {}

  i64 size() const noexcept override { return std::ssize(values_); }

  i64 first_outside() override {
    for (std::size_t k = 0; k < values_.size(); ++k)
      for (std::size_t m = 0; m < dims_.size(); ++m)
        if (columns_[m][k] < 0 || columns_[m][k] >= dims_[m])
          return static_cast<i64>(k);
    return -1;
  }

  i64 first_not_finite() override {
    const auto bad = std::find_if(values_.begin(), values_.end(), [](double x) { return !std::isfinite(x); });
    return bad == values_.end() ? -1 : bad - values_.begin();
  }

  void mark_rows(int mode, u64 *words) override {
    const auto m = static_cast<std::size_t>(mode);
    std::fill_n(words, dims_[m] / 64 + 1, u64{0});
    for (const i64 row : columns_[m])
      words[row / 64] |= u64{1} << row % 64;
  }

  void encode(const kernels::KeyMoves &keys, std::span<const RowNumbers> numbers) override {
    key_bytes_ = keys.bytes;
    keys_.assign(values_.size(), 0);
    for (std::size_t m = 0; m < columns_.size(); ++m)
      for (std::size_t k = 0; k < keys_.size(); ++k)
        keys_[k] |= moved(keys.moves[m], static_cast<u128>(number_of(numbers[m], columns_[m][k])));
    columns_.clear();
  }

  void sort() override { sort_by(0, 128); }

  void sort_by(int shift, int bits) override {
    std::vector<u128> fields;
    for (const u128 key : keys_)
      fields.push_back(key >> shift & low_bits(bits));
    const auto order = ordered(fields);
    permute(keys_, order);
    permute(values_, order);
    keys_there_ = kernels::DeviceBuffer();
    values_there_ = kernels::DeviceBuffer();
  }

  void merge_runs(std::span<const i64> begin) override {
    for (std::size_t k = 0; k + 1 < begin.size(); ++k)
      if (!std::is_sorted(keys_.begin() + begin[k], keys_.begin() + begin[k + 1]))
        throw_error(Status::internal, "entries {} to {} are not sorted", begin[k], begin[k + 1]);
    sort();
  }

  std::vector<i64> first_at(int shift, std::span<const i64> fields) override {
    std::vector<i64> first;
    for (const i64 field : fields)
      first.push_back(std::partition_point(keys_.begin(), keys_.end(),
                                           [&](u128 key) { return key >> shift < static_cast<u128>(field); }) -
                      keys_.begin());
    return first;
  }

  // Others reach the device's memory alone, so entries are there while they are exchanged.
  kernels::KeysAndValues here() override {
    const auto put = [&](kernels::DeviceBuffer &to, const std::vector<std::byte> &from) {
      if (to.bytes() != std::ssize(from)) {
        to = kernels::DeviceBuffer(backend_, std::ssize(from), "entries that are exchanged");
        backend_.upload(to.data(), from.data(), to.bytes());
      }
      return to.data();
    };
    void *const keys = put(keys_there_, written(keys_, key_bytes_));
    return {keys, key_bytes_, put(values_there_, written(values_)), type_};
  }

  void arrived() override {
    const auto take = [&](const kernels::DeviceBuffer &from, auto &&set) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(from.bytes()));
      if (!bytes.empty())
        backend_.download(bytes.data(), from.data(), from.bytes());
      for (std::size_t k = 0; k < keys_.size(); ++k)
        set(k, bytes.data());
    };
    take(keys_there_, [&](std::size_t k, const std::byte *bytes) {
      const auto each = static_cast<std::size_t>(key_bytes_);
      keys_[k] = 0;
      std::memcpy(&keys_[k], bytes + k * each, each);
    });
    take(values_there_, [&](std::size_t k, const std::byte *bytes) {
      dispatch(type_, [&](auto zero) {
        std::memcpy(&zero, bytes + k * sizeof zero, sizeof zero);
        values_[k] = static_cast<double>(zero);
      });
    });
  }

  std::unique_ptr<DeviceBuilding> beside(i64 size) override { return std::make_unique<SerialBuilding>(*this, size); }

  std::unique_ptr<DeviceBuilding> with_fields(int shift, int bits, std::span<const Range> fields) override {
    auto some = std::make_unique<SerialBuilding>(*this, 0);
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      const auto field = static_cast<i64>(keys_[k] >> shift & low_bits(bits));
      if (std::none_of(fields.begin(), fields.end(), [&](Range r) { return r.begin <= field && field < r.end; }))
        continue;
      some->keys_.push_back(keys_[k]);
      some->values_.push_back(values_[k]);
    }
    return some;
  }

  std::unique_ptr<Dealt> deal(int shift, int bits, std::span<const std::vector<Range>> owned) override {
    return std::make_unique<SerialDealt>(*this, shift, bits, owned);
  }

  i64 first_repeat() override {
    for (std::size_t k = 1; k < keys_.size(); ++k)
      if (keys_[k] == keys_[k - 1])
        return static_cast<i64>(k);
    return -1;
  }

  i64 merge() override {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < keys_.size();) {
      const u128 key = keys_[k];
      double sum = 0;
      for (; k < keys_.size() && keys_[k] == key; ++k)
        sum += values_[k];
      keys_[kept] = key;
      values_[kept++] = type_ == ValueType::f32 ? static_cast<double>(static_cast<float>(sum)) : sum;
    }
    keys_.resize(kept);
    values_.resize(kept);
    return first_not_finite();
  }

  std::vector<u128> keys(std::span<const i64> entries) override {
    std::vector<u128> some;
    for (const i64 entry : entries)
      some.push_back(keys_[static_cast<std::size_t>(entry)]);
    return some;
  }

  void recode(int key_bytes, std::span<const BitMove> moves) override {
    key_bytes_ = key_bytes;
    for (u128 &key : keys_)
      key = moved(moves, key);
  }

  std::vector<i64> runs(u128 mask) override {
    std::vector<i64> begins;
    for (std::size_t k = 0; k < keys_.size(); ++k)
      if (k == 0 || ((keys_[k] ^ keys_[k - 1]) & mask) != 0)
        begins.push_back(static_cast<i64>(k));
    begins.push_back(size());
    return begins;
  }

  void sum_values(double scale, i64 block, Range entries, ValueSums *sums) override {
    for (i64 begin = entries.begin; begin < entries.end; begin += block) {
      ValueSums s{0, 0, HUGE_VAL, -HUGE_VAL, 0};
      for (i64 k = begin; k < std::min(begin + block, entries.end); ++k) {
        const double x = values_[static_cast<std::size_t>(k)];
        const double y = x * scale;
        s.sum += y;
        s.squares += y * y;
        s.min = std::min(s.min, x);
        s.max = std::max(s.max, x);
        s.zeros += x == 0 ? 1 : 0;
      }
      *sums++ = s;
    }
  }

  void count_fields(int shift, int bits, std::span<i64> counts) override {
    std::fill(counts.begin(), counts.end(), i64{0});
    for (const u128 key : keys_)
      ++counts[static_cast<std::size_t>(key >> shift & low_bits(bits))];
  }

  std::shared_ptr<const DeviceArrays> take_entries() override {
    return built({written(keys_, key_bytes_), written(values_)});
  }

  Copy make_copy(const CopyPlan &plan) override {
    std::vector<u128> keys;
    std::vector<double> values;
    std::vector<i64> row_index, row_begin, tile_begin;
    std::vector<i64> tile_light(static_cast<std::size_t>(plan.tiles)), heavy_entries(tile_light.size());
    const i64 heavy = std::ssize(plan.heavy_rows);
    std::vector<i64> row_at(plan.heavy_rows.begin(), plan.heavy_rows.end()); // empty: ascending
    for (i64 row = 0; row < plan.dim && heavy > 0; ++row)
      if (std::find(plan.heavy_rows.begin(), plan.heavy_rows.end(), row) == plan.heavy_rows.end())
        row_at.push_back(row);
    std::vector<i64> rank(row_at.size());
    for (std::size_t at = 0; at < row_at.size(); ++at)
      rank[static_cast<std::size_t>(row_at[at])] = static_cast<i64>(at);
    std::vector<i64> place;
    for (const u128 key : keys_) {
      i64 tile = 0;
      for (const kernels::TileField &field : plan.tile_fields)
        tile += static_cast<i64>(key >> field.shift & low_bits(field.bits)) * field.stride;
      const auto row = static_cast<i64>(key >> plan.row_shift & low_bits(plan.row_bits));
      place.push_back(tile * plan.dim + (rank.empty() ? row : rank[static_cast<std::size_t>(row)]));
    }
    i64 before = -1;
    for (const std::size_t k : ordered(place)) {
      if (place[k] != before) {
        for (i64 tile = before < 0 ? 0 : before / plan.dim + 1; tile <= place[k] / plan.dim; ++tile)
          tile_begin.push_back(std::ssize(row_index));
        const i64 at = place[k] % plan.dim;
        row_index.push_back(row_at.empty() ? at : row_at[static_cast<std::size_t>(at)]);
        row_begin.push_back(std::ssize(keys));
        before = place[k];
        tile_light[static_cast<std::size_t>(before / plan.dim)] += at < heavy ? 1 : 0;
      }
      heavy_entries[static_cast<std::size_t>(before / plan.dim)] += before % plan.dim < heavy ? 1 : 0;
      keys.push_back(moved(plan.kept, keys_[k]));
      values.push_back(values_[k]);
    }
    row_begin.push_back(size());
    tile_begin.resize(static_cast<std::size_t>(plan.tiles) + 1, std::ssize(row_index));
    for (std::size_t tile = 0; tile < tile_light.size(); ++tile)
      tile_light[tile] += tile_begin[tile];
    return {built({written(keys, plan.key_bytes), written(values), bytes_of(row_index), bytes_of(row_begin)}),
            tile_begin, tile_light, heavy_entries};
  }

private:
  class SerialDealt final : public Dealt {
  public:
    SerialDealt(SerialBuilding &from, int shift, int bits, std::span<const std::vector<Range>> owned)
        : backend_(from.backend_), all_(std::make_unique<SerialBuilding>(from, 0)) {
      begin_ = {0};
      for (const std::vector<Range> &fields : owned) {
        const auto some = from.with_fields(shift, bits, fields);
        const auto &of_owner = static_cast<const SerialBuilding &>(*some);
        all_->keys_.insert(all_->keys_.end(), of_owner.keys_.begin(), of_owner.keys_.end());
        all_->values_.insert(all_->values_.end(), of_owner.values_.begin(), of_owner.values_.end());
        begin_.push_back(all_->size());
      }
    }
    std::unique_ptr<DeviceBuilding> take(Range entries) override {
      auto some = std::make_unique<SerialBuilding>(*all_, 0);
      some->keys_.assign(all_->keys_.begin() + entries.begin, all_->keys_.begin() + entries.end);
      some->values_.assign(all_->values_.begin() + entries.begin, all_->values_.begin() + entries.end);
      return some;
    }
    // Where the others' arrive, too.
    void take(Range entries, DeviceBuilding &to, i64 first) override {
      const auto some = take(entries);
      const kernels::KeysAndValues from = some->here(), there = to.here();
      if (entries.size() == 0)
        return;
      backend_.copy_from(backend_, there.key(first), from.keys, entries.size() * from.key_bytes);
      backend_.copy_from(backend_, there.value(first), from.values, entries.size() * size_of(from.type));
    }

  private:
    BuildingBackend &backend_;
    std::unique_ptr<SerialBuilding> all_;
  };

  static i64 number_of(const RowNumbers &numbers, i64 row) {
    if (numbers.words == nullptr)
      return row;
    const u64 below = (u64{1} << row % 64) - 1;
    return numbers.before[row / 64] + std::popcount(numbers.words[row / 64] & below);
  }

  template <class Key> static std::vector<std::size_t> ordered(const std::vector<Key> &keys) {
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
    return order;
  }

  template <class T> static void permute(std::vector<T> &x, const std::vector<std::size_t> &order) {
    std::vector<T> sorted;
    for (const std::size_t k : order)
      sorted.push_back(x[k]);
    x = std::move(sorted);
  }

  std::shared_ptr<const DeviceArrays> built(std::vector<std::vector<std::byte>> arrays) {
    return backend_.built(std::make_shared<HostArrays>(std::move(arrays)));
  }

  static std::vector<std::byte> written(const std::vector<u128> &keys, int key_bytes) {
    std::vector<std::byte> bytes(keys.size() * static_cast<std::size_t>(key_bytes));
    for (std::size_t k = 0; k < keys.size(); ++k)
      write_key(bytes.data(), key_bytes, k, keys[k]);
    return bytes;
  }
  std::vector<std::byte> written(const std::vector<double> &values) const {
    std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(type_)));
    dispatch(type_, [&](auto zero) {
      using T = decltype(zero);
      std::transform(values.begin(), values.end(), reinterpret_cast<T *>(bytes.data()),
                     [](double x) { return static_cast<T>(x); });
    });
    return bytes;
  }

  BuildingBackend &backend_;
  std::vector<i64> dims_;
  ValueType type_;
  std::vector<std::vector<i64>> columns_;
  std::vector<double> values_; // f32 widened, which loses nothing
  int key_bytes_ = 8;
  std::vector<u128> keys_;
  kernels::DeviceBuffer keys_there_, values_there_;
};

} // namespace

std::unique_ptr<DeviceBuilding> BuildingBackend::begin_building(const EntriesView &entries, bool,
                                                                const kernels::KeyMoves *) {
  return std::make_unique<SerialBuilding>(*this, entries);
}

} // namespace td::software
