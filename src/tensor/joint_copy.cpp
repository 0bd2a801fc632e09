#include "tensor/joint_copy.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/backend.hpp"

namespace td::tensor {

using kernels::Copy;
using kernels::DeviceBuilding;
using kernels::KeysAndValues;

namespace {

i64 field_of(u128 key, int shift, int bits) {
  return static_cast<i64>(key >> shift & ((u128{1} << bits) - 1)); // of an index, so bits < 64
}

std::vector<u64> no_rows(i64 dim) { return std::vector<u64>(static_cast<std::size_t>(dim / 64 + 1)); }

void add_rows(std::vector<u64> &words, Range rows) {
  for (i64 row = rows.begin; row < rows.end;) { // a word at a time
    const i64 end = std::min(rows.end, (row / 64 + 1) * 64);
    const u64 bits = end - row == 64 ? ~u64{0} : (u64{1} << (end - row)) - 1;
    words[static_cast<std::size_t>(row / 64)] |= bits << row % 64;
    row = end;
  }
}

} // namespace

CopyExchange::CopyExchange(const kernels::CopyPlan &plan, const plan::Partition &partition)
    : plan_(plan), partition_(partition), counts_(partition.load.size()), runs_(partition.load.size()) {}

CopyExchange::Source CopyExchange::select(DeviceBuilding &entries, std::size_t device) {
  Source source;
  for (int worker = 0; worker < partition_.workers(); ++worker) {
    std::vector<u64> words = no_rows(plan_.dim);
    for (const Range &rows : partition_.whole_rows(worker))
      add_rows(words, rows);
    source.rows.push_back(entries.with_fields(plan_.row_shift, plan_.row_bits, words));
    counts_[device].push_back(source.rows.back()->size());
  }
  for (const plan::SplitRow &split : partition_.split) {
    std::vector<u64> words = no_rows(plan_.dim);
    add_rows(words, {split.row, split.row + 1});
    source.split.push_back(entries.with_fields(plan_.row_shift, plan_.row_bits, words));
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
      run.tile += field_of(keys[k], field.shift, field.bits) * field.stride;
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
  for (std::size_t device = 0; device < counts_.size(); ++device)
    if (counts_[device][worker] > 0)
      messages.push_back({device, -1, {0, counts_[device][worker]}});
  for (std::size_t split = 0; split < partition_.split.size(); ++split)
    for (const auto &segment : partition_.split[split].segments)
      if (segment.worker == static_cast<int>(worker))
        add_split(split, segment.entries, messages);
  return messages;
}

Copy CopyExchange::make_part(kernels::Backend &device, Communicator &others, DeviceBuilding &entries) {
  const auto rank = static_cast<std::size_t>(others.rank());
  std::optional<Source> source = select(entries, rank);
  others.barrier(); // counts and runs of all are there
  const auto part = [&](const Message &message, std::size_t worker) {
    return (message.split < 0 ? source->rows[worker] : source->split[static_cast<std::size_t>(message.split)])->here();
  };
  i64 size = 0;
  const Messages mine = messages_to(rank);
  for (const Message &message : mine)
    size += message.entries.size();
  const auto arrived = entries.beside(size);
  const KeysAndValues to = arrived->here();
  kernels::Transfers sent, received;
  const auto add = [](kernels::Transfers &list, std::size_t worker, const KeysAndValues &at, i64 entry, i64 count) {
    list.push_back({static_cast<int>(worker), at.key(entry), count * at.key_bytes});
    list.push_back({static_cast<int>(worker), at.value(entry), count * size_of(at.type)});
  };
  i64 at = 0;
  for (const Message &message : mine) {
    const i64 count = message.entries.size();
    if (message.device == rank) {
      const KeysAndValues from = part(message, rank);
      device.copy_from(device, to.key(at), from.key(message.entries.begin), count * to.key_bytes);
      device.copy_from(device, to.value(at), from.value(message.entries.begin), count * size_of(to.type));
    } else {
      add(received, message.device, to, at, count);
    }
    at += count;
  }
  for (std::size_t worker = 0; worker < counts_.size(); ++worker)
    if (worker != rank)
      for (const Message &message : messages_to(worker))
        if (message.device == rank)
          add(sent, worker, part(message, worker), message.entries.begin, message.entries.size());
  others.exchange(sent, received);
  source.reset();
  if (size == 0)
    return {};
  arrived->arrived();
  Copy copy = arrived->make_copy(plan_);
  const auto arrays = copy.arrays->arrays();
  for (const auto &[list, number] : {std::pair(&copy.row_index, 2), std::pair(&copy.row_begin, 3)}) {
    const auto &array = arrays[static_cast<std::size_t>(number)];
    list->resize(static_cast<std::size_t>(array.bytes / 8));
    device.download(list->data(), array.data, array.bytes);
  }
  return copy;
}

namespace {

constexpr i64 no_row = std::numeric_limits<i64>::max();

/// The rows of one part among some slots, in ascending order.
struct Cursor {
  const Copy *part;
  Range slots;

  i64 row() const { return slots.size() == 0 ? no_row : part->row_index[static_cast<std::size_t>(slots.begin)]; }
  /// Where the rows from one on begin.
  i64 slot_of(i64 row) const {
    const auto begin = part->row_index.begin();
    return std::lower_bound(begin + slots.begin, begin + slots.end, row) - begin;
  }
  i64 entries(i64 slot) const {
    return part->row_begin[static_cast<std::size_t>(slot) + 1] - part->row_begin[static_cast<std::size_t>(slot)];
  }
};

/// Adds the rows of all to a copy's lists, in ascending order, those that several have once.
void merge(std::vector<Cursor> all, Copy &to) {
  const auto by_row = [](const Cursor &a, const Cursor &b) { return a.row() < b.row(); };
  for (;;) {
    const auto least = std::min_element(all.begin(), all.end(), by_row);
    if (least == all.end() || least->row() == no_row)
      return;
    const i64 first = least->row();
    i64 shared = 0;     // entries of that row that others have, too
    i64 limit = no_row; // the next row of another
    for (auto cursor = all.begin(); cursor != all.end(); ++cursor) {
      if (cursor == least)
        continue;
      if (cursor->row() == first)
        shared += cursor->entries(cursor->slots.begin++);
      limit = std::min(limit, cursor->row());
    }
    const i64 end = least->slot_of(limit);
    for (i64 slot = std::exchange(least->slots.begin, end); slot < end; ++slot) {
      to.row_index.push_back(least->part->row_index[static_cast<std::size_t>(slot)]);
      to.row_begin.push_back(to.row_begin.back() + least->entries(slot) + std::exchange(shared, 0));
    }
  }
}

} // namespace

Copy merged_lists(const std::vector<Copy> &parts, i64 tiles) {
  Copy all;
  all.row_begin.push_back(0);
  all.tile_begin.push_back(0);
  for (i64 tile = 0; tile < tiles; ++tile) {
    const auto t = static_cast<std::size_t>(tile);
    std::vector<Cursor> heavy, light;
    for (const Copy &part : parts)
      if (!part.row_index.empty()) {
        heavy.push_back({&part, {part.tile_begin[t], part.tile_light[t]}});
        light.push_back({&part, {part.tile_light[t], part.tile_begin[t + 1]}});
      }
    const i64 before = all.row_begin.back();
    merge(std::move(heavy), all);
    all.tile_light.push_back(std::ssize(all.row_index));
    all.heavy_entries.push_back(all.row_begin.back() - before);
    merge(std::move(light), all);
    all.tile_begin.push_back(std::ssize(all.row_index));
  }
  return all;
}

} // namespace td::tensor
