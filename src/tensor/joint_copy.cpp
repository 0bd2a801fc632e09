#include "tensor/joint_copy.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/backend.hpp"
#include "tensor/joint_counts.hpp"

namespace td::tensor {

using kernels::Copy;
using kernels::DeviceBuilding;
using kernels::KeysAndValues;

void add_entries(kernels::Transfers &list, std::size_t worker, const KeysAndValues &at, Range entries) {
  if (entries.size() == 0)
    return;
  list.push_back({static_cast<int>(worker), at.key(entries.begin), entries.size() * at.key_bytes});
  list.push_back({static_cast<int>(worker), at.value(entries.begin), entries.size() * size_of(at.type)});
}

void copy_entries(kernels::Backend &device, const KeysAndValues &to, i64 first, const KeysAndValues &from,
                  Range entries) {
  if (entries.size() == 0)
    return;
  device.copy_from(device, to.key(first), from.key(entries.begin), entries.size() * to.key_bytes);
  device.copy_from(device, to.value(first), from.value(entries.begin), entries.size() * size_of(to.type));
}

CopyExchange::CopyExchange(const kernels::CopyPlan &plan, plan::Partition partition)
    : plan_(plan), partition_(std::move(partition)), own_(partition_.load.size()), runs_(partition_.load.size()),
      found_(partition_.load.size()) {
  for (int worker = 0; worker < partition_.workers(); ++worker)
    for (const Range &rows : partition_.whole_rows(worker))
      stretches_.push_back({rows, {worker}});
  for (const plan::SplitRow &split : partition_.split) {
    Stretch &row = stretches_.emplace_back(Stretch{{split.row, split.row + 1}, {}, &split - partition_.split.data()});
    for (const auto &segment : split.segments)
      row.workers.push_back(segment.worker);
  }
  std::sort(stretches_.begin(), stretches_.end(),
            [](const Stretch &a, const Stretch &b) { return a.rows.begin < b.rows.begin; });
}

CopyExchange::Source CopyExchange::select(DeviceBuilding &entries, std::size_t device) {
  const std::size_t workers = own_.size();
  std::vector<Ranges> owned; // the other workers' come first
  for (std::size_t k = 1; k <= workers; ++k)
    owned.push_back(partition_.whole_rows(static_cast<int>((device + k) % workers)));
  Source source{entries.deal(plan_.row_shift, plan_.row_bits, owned), nullptr, {}};
  for (std::size_t worker = 0; worker < workers; ++worker)
    own_[device].push_back(source.dealt->of((worker + workers - device - 1) % workers));
  source.rows = source.dealt->take({0, own_[device][device].begin});
  for (const plan::SplitRow &split : partition_.split) {
    const Range row{split.row, split.row + 1};
    source.split.push_back(entries.with_fields(plan_.row_shift, plan_.row_bits, {&row, 1}));
    runs_[device].push_back(runs_of(*source.split.back()));
  }
  return source;
}

// A copy has the row's entries tile by tile. A tile's number is a sum of fields, each of which counts more than those
// of smaller strides together.
std::vector<CopyExchange::Run> CopyExchange::runs_of(DeviceBuilding &row) const {
  if (row.size() == 0)
    return {};
  std::vector<kernels::TileField> fields(plan_.tile_fields.begin(), plan_.tile_fields.end());
  std::sort(fields.begin(), fields.end(), [](const auto &a, const auto &b) { return a.stride < b.stride; });
  u128 mask = 0;
  for (const auto &field : fields) {
    if (field.bits > 0)
      row.sort_by(field.shift, field.bits);
    mask |= ((u128{1} << field.bits) - 1) << field.shift;
  }
  const std::vector<i64> begins = row.runs(mask);
  const std::vector<u128> keys = row.keys(std::span(begins).first(begins.size() - 1));
  std::vector<Run> runs;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    Run &run = runs.emplace_back(Run{0, {begins[k], begins[k + 1]}});
    for (const auto &field : fields)
      run.tile += index_in(keys[k], field.shift, field.bits) * field.stride;
  }
  return runs;
}

/// Some of a split row's entries, counted in the order that they have in the copy.
void CopyExchange::add_split(std::size_t split, Range ordinals, Messages &to) const {
  struct Next {
    i64 tile;
    std::size_t device;
    Range entries;
  };
  std::vector<Next> all;
  for (std::size_t device = 0; device < runs_.size(); ++device)
    for (const Run &run : runs_[device][split])
      all.push_back({run.tile, device, run.entries});
  std::sort(all.begin(), all.end(),
            [](const Next &a, const Next &b) { return std::pair(a.tile, a.device) < std::pair(b.tile, b.device); });
  i64 before = 0;
  for (const Next &next : all) {
    const Range some{std::max(ordinals.begin, before), std::min(ordinals.end, before + next.entries.size())};
    const i64 skipped = next.entries.begin - before;
    if (some.begin < some.end)
      to.push_back({next.device, static_cast<i64>(split), {some.begin + skipped, some.end + skipped}});
    before += next.entries.size();
  }
}

// Only the order within a row and tile counts: a copy sorts the rest.
CopyExchange::Messages CopyExchange::messages_to(std::size_t worker) const {
  Messages messages;
  for (std::size_t device = 0; device < own_.size(); ++device)
    if (const Range own = own_[device][worker]; own.size() > 0)
      messages.push_back({device, -1, own});
  for (std::size_t split = 0; split < partition_.split.size(); ++split)
    for (const auto &segment : partition_.split[split].segments)
      if (segment.worker == static_cast<int>(worker))
        add_split(split, segment.entries, messages);
  return messages;
}

Copy CopyExchange::make_part(kernels::Backend &device, Communicator &others, DeviceBuilding &entries) {
  const auto rank = static_cast<std::size_t>(others.rank());
  std::optional<Source> source = select(entries, rank);
  others.barrier(); // ranges and runs of all are there
  const auto part = [&](const Message &message) {
    return (message.split < 0 ? source->rows : source->split[static_cast<std::size_t>(message.split)])->here();
  };
  i64 size = 0;
  const Messages mine = messages_to(rank);
  for (const Message &message : mine)
    size += message.entries.size();
  const auto arrived = entries.beside(size);
  const KeysAndValues to = arrived->here();
  kernels::Transfers sent, received;
  i64 at = 0;
  for (const Message &message : mine) {
    const i64 count = message.entries.size();
    if (message.device != rank)
      add_entries(received, message.device, to, {at, at + count});
    at += count;
  }
  for (std::size_t worker = 0; worker < own_.size(); ++worker)
    if (worker != rank)
      for (const Message &message : messages_to(worker))
        if (message.device == rank)
          add_entries(sent, worker, part(message), message.entries);
  const JoinAtEnd join{device};
  others.begin_exchange(sent, received);
  at = 0;
  for (const Message &message : mine) {
    if (message.device == rank && message.split < 0)
      source->dealt->take(message.entries, *arrived, at);
    else if (message.device == rank)
      copy_entries(device, to, at, part(message), message.entries);
    at += message.entries.size();
  }
  others.end_exchanges();
  source.reset();
  if (size == 0)
    return {};
  arrived->arrived();
  Copy copy = arrived->make_copy(plan_);
  found_[rank] = find_stretches(device, copy, others.rank());
  return copy;
}

std::vector<CopyExchange::Found> CopyExchange::find_stretches(kernels::Backend &device, const Copy &part,
                                                              int worker) const {
  std::vector<Range> own;
  for (const Stretch &stretch : stretches_)
    if (std::find(stretch.workers.begin(), stretch.workers.end(), worker) != stretch.workers.end())
      own.push_back(stretch.rows);
  std::vector<kernels::RowQuery> wanted; // where each begins and ends
  for (i64 tile = 0; tile < plan_.tiles; ++tile) {
    const auto t = static_cast<std::size_t>(tile);
    for (const Range slots :
         {Range{part.tile_begin[t], part.tile_light[t]}, Range{part.tile_light[t], part.tile_begin[t + 1]}})
      for (const Range &rows : own)
        wanted.insert(wanted.end(), {{slots, rows.begin}, {slots, rows.end}});
  }
  std::vector<kernels::RowPlace> places(wanted.size());
  const auto arrays = part.arrays->arrays();
  device.find_rows(static_cast<const i64 *>(arrays[2].data), static_cast<const i64 *>(arrays[3].data), wanted, places);
  std::vector<Found> found;
  for (std::size_t k = 0; k < places.size(); k += 2)
    found.push_back({{places[k].slot, places[k + 1].slot}, {places[k].entry, places[k + 1].entry}});
  return found;
}

// What the parts have of a tile's heavy rows, and of its light ones, follows each other by rows.
JoinedCopy CopyExchange::join() const {
  JoinedCopy all;
  std::vector<Load> &loads = all.sharded.loads;
  std::vector<Selection> &selected = all.sharded.selected;
  selected.resize(found_.size());
  for (int worker = 0; worker < partition_.workers(); ++worker) {
    Load &load = loads.emplace_back(Load{partition_.whole_rows(worker), {}});
    for (const plan::SplitRow &split : partition_.split)
      load.split.push_back({split.row, {}});
  }
  std::vector<std::size_t> next(found_.size());
  i64 slot = 0, entry = 0; // of the whole
  const auto add = [&](const Stretch &stretch) {
    i64 slots = 0;
    for (const int worker : stretch.workers) {
      const auto w = static_cast<std::size_t>(worker);
      if (found_[w].empty())
        continue; // it has no entries at all
      const Found &found = found_[w][next[w]++];
      const Range entries{entry, entry + found.entries.size()};
      if (entries.size() == 0)
        continue;
      selected[w].entries.add(entries);
      selected[w].lists.add({slot, slot + found.slots.size()});
      if (stretch.split >= 0) {
        Range &mine = loads[w].split[static_cast<std::size_t>(stretch.split)].entries;
        mine = {mine.size() == 0 ? entries.begin : mine.begin, entries.end};
      }
      entry = entries.end;
      slots = found.slots.size(); // of a split row 1, whoever has some of it
    }
    slot += slots;
  };
  all.lists.tile_begin.push_back(0);
  for (i64 tile = 0; tile < plan_.tiles; ++tile) {
    const i64 before = entry;
    std::for_each(stretches_.begin(), stretches_.end(), add);
    all.lists.tile_light.push_back(slot);
    all.lists.heavy_entries.push_back(entry - before);
    std::for_each(stretches_.begin(), stretches_.end(), add);
    all.lists.tile_begin.push_back(slot);
  }
  all.sharded.partition = partition_;
  return all;
}

} // namespace td::tensor
