#include "tensor/joint_building.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "core/buffer.hpp"
#include "tensor/joint_copy.hpp"
#include "tensor/joint_counts.hpp"

namespace td::tensor {

using kernels::Copy;
using kernels::DeviceArrays;
using kernels::KeysAndValues;
using kernels::ValueSums;

namespace {

/// Keys and values, or all arrays of a sorted copy, of which several devices have some each.
class GatheredArrays final : public DeviceArrays {
public:
  struct OfDevice {
    std::shared_ptr<const DeviceArrays> arrays; // keys and values come first, then row_index and row_begin
    Selection some;                             // of all
  };
  GatheredArrays(std::vector<OfDevice> parts, i64 entries, i64 key_bytes, i64 value_bytes)
      : parts_(std::move(parts)), entries_(entries), each_{key_bytes, value_bytes} {}
  /// They list so many rows.
  void list_rows(i64 rows) { rows_ = rows; }

  std::vector<Array> arrays() const override {
    std::vector<Array> all{{nullptr, entries_ * each_[0]}, {nullptr, entries_ * each_[1]}};
    if (rows_ >= 0)
      all.insert(all.end(), {{nullptr, rows_ * 8}, {nullptr, (rows_ + 1) * 8}});
    return all;
  }

  void download(std::span<void *const> to_host) const override {
    const bool lists = to_host.size() > 2 && (to_host[2] != nullptr || to_host[3] != nullptr);
    auto *const row_begin = lists ? static_cast<i64 *>(to_host[3]) : nullptr;
    if (row_begin != nullptr)
      std::fill_n(row_begin, rows_ + 1, i64{0});
    for (const OfDevice &part : parts_) {
      const auto there = part.arrays->arrays();
      std::vector<Buffer<std::byte>> come(there.size());
      std::vector<void *> places(there.size(), nullptr);
      for (std::size_t k = 0; k < to_host.size(); ++k)
        if (to_host[k] != nullptr) {
          come[k] = Buffer<std::byte>(there[k].bytes, "what a GPU has of a copy");
          places[k] = come[k].data();
        }
      part.arrays->download(places);
      for (std::size_t k = 0; k < 2; ++k)
        if (places[k] != nullptr)
          scatter(part.some.entries, come[k].data(), each_[k], static_cast<std::byte *>(to_host[k]));
      if (lists && places[2] != nullptr)
        scatter(part.some.lists, come[2].data(), 8, static_cast<std::byte *>(to_host[2]));
      if (row_begin != nullptr)
        add_entries(part.some.lists, reinterpret_cast<const i64 *>(come[3].data()), row_begin);
    }
    if (row_begin != nullptr)
      std::partial_sum(row_begin, row_begin + rows_ + 1, row_begin);
  }

private:
  static void scatter(const Chosen &some, const std::byte *from, i64 each, std::byte *to) {
    some.each({0, some.count()}, [&](Range range) {
      std::copy_n(from, range.size() * each, to + range.begin * each);
      from += range.size() * each;
    });
  }
  /// Adds those of each row of a part to what stands behind the row. Several parts may have the same row.
  static void add_entries(const Chosen &rows, const i64 *begin, i64 *to) {
    rows.each({0, rows.count()}, [&](Range range) {
      for (i64 row = range.begin; row < range.end; ++row, ++begin)
        to[row + 1] += begin[1] - begin[0];
    });
  }

  std::vector<OfDevice> parts_;
  i64 entries_;
  i64 each_[2];
  i64 rows_ = -1; // none are listed
};

constexpr i64 samples_of_device = 4096; // by which keys are partitioned: to a hundredth of what a device is to have

Backends not_owned(const std::vector<kernels::Backend *> &devices) {
  Backends all;
  for (kernels::Backend *device : devices)
    all.emplace_back(std::shared_ptr<void>(), device);
  return all;
}

/// The leading bits of a key, by which devices share the keys.
struct LeadingBits {
  explicit LeadingBits(int key_bits) : bits(std::min(key_bits, 62)), shift(key_bits - bits) {}
  i64 of(u128 key) const noexcept { return static_cast<i64>(key >> shift); }
  int bits;
  int shift;
};

/// What cuts the keys of all devices into nearly equal parts: where each begins, then the end.
std::vector<i64> cuts_of(const std::vector<std::vector<i64>> &samples, const LeadingBits &leading) {
  std::vector<i64> all;
  for (const auto &some : samples)
    all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  std::vector<i64> cuts{0};
  for (std::size_t k = 1; k < samples.size(); ++k)
    cuts.push_back(all[all.size() * k / samples.size()]);
  cuts.push_back(i64{1} << leading.bits);
  return cuts;
}

/// One of the entries is picked at random from each of as many equal ranges.
std::vector<i64> sample(kernels::DeviceBuilding &entries, const LeadingBits &leading) {
  const i64 count = std::min(samples_of_device, entries.size());
  std::mt19937_64 random(20261128);
  std::vector<i64> some;
  for (i64 k = 0; k < count; ++k) {
    const Range range = part_of({0, entries.size()}, k, count);
    some.push_back(range.begin + static_cast<i64>(random() % static_cast<u64>(range.size())));
  }
  std::vector<i64> found;
  for (const u128 key : entries.keys(some))
    found.push_back(leading.of(key));
  return found;
}

} // namespace

EntriesView JointBuilding::given_to(std::size_t device, std::size_t devices, const EntriesView &entries,
                                    std::vector<const void *> &columns) {
  const Range some = part_of({0, entries.nnz}, static_cast<i64>(device), static_cast<i64>(devices));
  columns.clear();
  for (int m = 0; m < entries.order(); ++m)
    columns.push_back(static_cast<const char *>(entries.indices[m]) + some.begin * size_of(entries.index_type));
  EntriesView part = entries;
  part.nnz = some.size();
  part.indices = columns.data();
  part.values = static_cast<const char *>(entries.values) + some.begin * size_of(entries.value_type);
  return part;
}

std::unique_ptr<JointBuilding> JointBuilding::begin(const std::vector<kernels::Backend *> &devices,
                                                    const EntriesView &entries, plan::ShardingRule rule,
                                                    const kernels::KeyMoves *keys) {
  if (entries.nnz < static_cast<i64>(devices.size()))
    return nullptr;
  std::unique_ptr<JointBuilding> all(new JointBuilding(not_owned(devices), entries.dims, rule));
  run_workers(all->backends_, [&](kernels::Backend &device, Communicator &others) {
    std::vector<const void *> columns;
    const auto rank = static_cast<std::size_t>(others.rank());
    all->devices_[rank] = device.begin_building(given_to(rank, devices.size(), entries, columns), true, keys);
  });
  const bool any = std::find(all->devices_.begin(), all->devices_.end(), nullptr) != all->devices_.end();
  return any ? nullptr : std::move(all);
}

/// Calls f(entries of a device, its number) for the devices that have some, each from its thread.
template <class F> void JointBuilding::on_all(F &&f) {
  run_workers(backends_, [&](kernels::Backend &, Communicator &others) {
    const auto rank = static_cast<std::size_t>(others.rank());
    if (devices_[rank]->size() > 0)
      f(*devices_[rank], rank);
  });
}

/// The first entry that f finds on a device, counted over all; -1: none.
template <class F> i64 JointBuilding::first_of_all(F &&f) {
  std::vector<i64> found(devices_.size(), -1);
  on_all([&](kernels::DeviceBuilding &entries, std::size_t device) { found[device] = f(entries); });
  for (std::size_t device = 0; device < found.size(); ++device)
    if (found[device] >= 0)
      return before(device) + found[device];
  return -1;
}

i64 JointBuilding::size() const noexcept { return before(devices_.size()); }

i64 JointBuilding::before(std::size_t device) const noexcept {
  i64 sum = 0;
  for (std::size_t k = 0; k < device; ++k)
    sum += devices_[k]->size();
  return sum;
}

std::size_t JointBuilding::device_of(i64 entry) const noexcept {
  std::size_t device = 0;
  while (entry >= devices_[device]->size())
    entry -= devices_[device++]->size();
  return device;
}

i64 JointBuilding::first_outside() {
  return first_of_all([](kernels::DeviceBuilding &entries) { return entries.first_outside(); });
}

i64 JointBuilding::first_not_finite() {
  return first_of_all([](kernels::DeviceBuilding &entries) { return entries.first_not_finite(); });
}

void JointBuilding::mark_rows(int mode, u64 *words) {
  const auto count = static_cast<std::size_t>(dims_[static_cast<std::size_t>(mode)] / 64 + 1);
  std::vector<std::vector<u64>> marks(devices_.size());
  on_all([&](kernels::DeviceBuilding &entries, std::size_t device) {
    marks[device].resize(count);
    entries.mark_rows(mode, marks[device].data());
  });
  std::fill_n(words, count, u64{0});
  for (const std::vector<u64> &some : marks)
    for (std::size_t k = 0; k < some.size(); ++k)
      words[k] |= some[k];
}

void JointBuilding::encode(const kernels::KeyMoves &keys, std::span<const kernels::RowNumbers> numbers) {
  key_bits_ = kernels::bits_set(keys.moves);
  on_all([&](kernels::DeviceBuilding &entries, std::size_t) { entries.encode(keys, numbers); });
}

// Each device sorts what it has. Keys picked at random tell where to cut the order of all. A device gets what lies
// between two cuts from each, in the order of the devices, which is that of the entries, and merges it.
void JointBuilding::sort() {
  const std::size_t count = devices_.size();
  const LeadingBits leading(key_bits_);
  std::vector<std::vector<i64>> samples(count);
  std::vector<std::vector<i64>> begins(count); // [devices][devices + 1] of what goes from one to the others
  run_workers(backends_, [&](kernels::Backend &device, Communicator &others) {
    const auto rank = static_cast<std::size_t>(others.rank());
    devices_[rank]->sort();
    samples[rank] = sample(*devices_[rank], leading);
    others.barrier();
    begins[rank] = devices_[rank]->first_at(leading.shift, cuts_of(samples, leading));
    others.barrier();
    std::vector<i64> runs{0}; // of those that arrive
    for (std::size_t from = 0; from < count; ++from)
      runs.push_back(runs.back() + begins[from][rank + 1] - begins[from][rank]);
    auto arrived = devices_[rank]->beside(runs.back());
    const KeysAndValues here = devices_[rank]->here(), there = arrived->here();
    kernels::Transfers sent, received;
    for (std::size_t k = 0; k < count; ++k) {
      const Range out{begins[rank][k], begins[rank][k + 1]};
      if (k == rank) {
        copy_entries(device, there, runs[k], here, out);
      } else {
        add_entries(sent, k, here, out);
        add_entries(received, k, there, {runs[k], runs[k + 1]});
      }
    }
    others.exchange(sent, received);
    devices_[rank] = std::move(arrived);
    devices_[rank]->arrived();
    devices_[rank]->merge_runs(runs);
  });
}

i64 JointBuilding::first_repeat() {
  return first_of_all([](kernels::DeviceBuilding &entries) { return entries.first_repeat(); });
}

i64 JointBuilding::merge() {
  return first_of_all([](kernels::DeviceBuilding &entries) { return entries.merge(); });
}

std::vector<u128> JointBuilding::keys(std::span<const i64> entries) {
  std::vector<u128> all;
  for (const i64 entry : entries) {
    const std::size_t device = device_of(entry);
    const i64 there = entry - before(device);
    all.push_back(devices_[device]->keys({&there, 1}).front());
  }
  return all;
}

void JointBuilding::recode(int key_bytes, std::span<const kernels::BitMove> moves) {
  on_all([&](kernels::DeviceBuilding &entries, std::size_t) { entries.recode(key_bytes, moves); });
}

std::vector<i64> JointBuilding::runs(u128 mask) {
  std::vector<std::vector<i64>> found(devices_.size());
  on_all([&](kernels::DeviceBuilding &entries, std::size_t device) { found[device] = entries.runs(mask); });
  std::vector<i64> all;
  for (std::size_t device = 0; device < found.size(); ++device)
    for (std::size_t k = 0; k + 1 < found[device].size(); ++k) {
      const i64 begin = before(device) + found[device][k];
      if (k == 0 && begin > 0) {
        const i64 neighbours[] = {begin - 1, begin};
        const std::vector<u128> both = keys(neighbours);
        if (((both[0] ^ both[1]) & mask) == 0)
          continue; // goes on from the device before
      }
      all.push_back(begin);
    }
  all.push_back(size());
  return all;
}

// Blocks within a device are summed there, those across on the host: each in the same order as by one device.
void JointBuilding::sum_values(double scale, i64 block, Range entries, ValueSums *sums) {
  const i64 blocks = (entries.size() + block - 1) / block;
  const auto block_at = [&](i64 b) {
    return Range{entries.begin + b * block, std::min(entries.end, entries.begin + (b + 1) * block)};
  };
  std::vector<Range> inside(devices_.size()); // blocks
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    const i64 begin = before(device) - entries.begin, end = begin + devices_[device]->size();
    const i64 first = std::max<i64>(begin + block - 1, 0) / block;
    const i64 last = end >= entries.size() ? blocks : std::max<i64>(end, 0) / block;
    inside[device] = {first, std::max(first, last)};
  }
  on_all([&](kernels::DeviceBuilding &own, std::size_t device) {
    if (const Range some = inside[device]; some.size() > 0) {
      const i64 offset = before(device);
      own.sum_values(scale, block, {block_at(some.begin).begin - offset, block_at(some.end - 1).end - offset},
                     sums + some.begin);
    }
  });
  i64 next = 0;
  for (const Range &some : inside) {
    if (some.size() == 0)
      continue;
    for (; next < some.begin; ++next)
      sums[next] = sum_across(scale, block_at(next));
    next = some.end;
  }
  for (; next < blocks; ++next)
    sums[next] = sum_across(scale, block_at(next));
}

ValueSums JointBuilding::sum_across(double scale, Range entries) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ValueSums sums{0, 0, infinity, -infinity, 0};
  while (entries.size() > 0) {
    const std::size_t device = device_of(entries.begin);
    const i64 offset = before(device);
    const i64 count = std::min(entries.end, offset + devices_[device]->size()) - entries.begin;
    const KeysAndValues here = devices_[device]->here();
    dispatch(here.type, [&](auto zero) {
      std::vector<decltype(zero)> values(static_cast<std::size_t>(count));
      backends_[device]->download(values.data(), here.value(entries.begin - offset), count * size_of(here.type));
      for (const auto value : values)
        sums.add(static_cast<double>(value), scale);
    });
    entries.begin += count;
  }
  return sums;
}

void JointBuilding::count_fields(int shift, int bits, std::span<i64> counts) {
  std::vector<std::vector<i64>> of_others(devices_.size());
  std::fill(counts.begin(), counts.end(), i64{0});
  on_all([&](kernels::DeviceBuilding &entries, std::size_t device) {
    if (device > 0)
      of_others[device].resize(counts.size());
    entries.count_fields(shift, bits, device > 0 ? std::span(of_others[device]) : counts);
  });
  for (const std::vector<i64> &some : of_others)
    for (std::size_t k = 0; k < some.size(); ++k)
      counts[k] += some[k];
}

std::vector<CountedRow> JointBuilding::count_rows(const kernels::CopyPlan &plan, const Ranges &rows) {
  std::vector<std::vector<CountedRow>> of_devices(devices_.size());
  on_all([&](kernels::DeviceBuilding &entries, std::size_t device) {
    of_devices[device] = tensor::count_rows(entries, plan, rows);
  });
  std::map<i64, i64> sums;
  for (const std::vector<CountedRow> &some : of_devices)
    for (const CountedRow &counted : some)
      sums[counted.row] += counted.entries;
  std::vector<CountedRow> all;
  for (const auto &[row, entries] : sums)
    all.push_back({row, entries});
  return all;
}

plan::Partition JointBuilding::partition_of(const kernels::CopyPlan &plan) {
  const int shift = std::max(0, plan.row_bits - BucketCounts::bits);
  std::vector<i64> counts(static_cast<std::size_t>((plan.dim - 1) >> shift) + 1);
  count_fields(plan.row_shift + shift, plan.row_bits - shift, counts);
  const BucketCounts rows(plan.dim, shift, counts, [&](const Ranges &some) { return count_rows(plan, some); });
  return partition_by(rows, static_cast<int>(devices_.size()), partition_kind(rule_, false));
}

Copy JointBuilding::make_copy(const kernels::CopyPlan &plan) {
  CopyExchange exchange(plan, partition_of(plan));
  std::vector<std::shared_ptr<const DeviceArrays>> parts(devices_.size());
  run_workers(backends_, [&](kernels::Backend &device, Communicator &others) {
    const auto rank = static_cast<std::size_t>(others.rank());
    parts[rank] = exchange.make_part(device, others, *devices_[rank]).arrays;
  });
  JoinedCopy joined = exchange.join();
  std::vector<GatheredArrays::OfDevice> gathered;
  for (std::size_t worker = 0; worker < parts.size(); ++worker)
    if (parts[worker] != nullptr)
      gathered.push_back({parts[worker], joined.sharded.selected[worker]});
  const auto all = std::make_shared<GatheredArrays>(std::move(gathered), size(), plan.key_bytes,
                                                    size_of(devices_.front()->here().type));
  all->list_rows(joined.lists.tile_begin.back());
  held_ = {std::move(parts), std::make_shared<const Sharded>(std::move(joined.sharded))};
  joined.lists.arrays = all;
  return std::move(joined.lists);
}

std::shared_ptr<const DeviceArrays> JointBuilding::take_entries() {
  std::vector<GatheredArrays::OfDevice> parts;
  const i64 all = size();
  const KeysAndValues here = devices_.front()->here();
  for (std::size_t device = 0; device < devices_.size(); ++device)
    if (devices_[device]->size() > 0) {
      const i64 begin = before(device);
      Selection some;
      some.entries.add({begin, begin + devices_[device]->size()});
      parts.push_back({devices_[device]->take_entries(), std::move(some)});
    }
  return std::make_shared<GatheredArrays>(std::move(parts), all, here.key_bytes, size_of(here.type));
}

} // namespace td::tensor
