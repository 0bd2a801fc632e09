#include "plan/layout.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/strides.hpp"
#include "formats/key.hpp"
#include "formats/merged.hpp"
#include "kernels/gpu_model.hpp"
#include "kernels/memory_order.hpp"
#include "plan/needs.hpp"

namespace td::plan {

namespace {

std::string partition_text(const std::vector<GroupLayout> &partition) {
  std::string text;
  for (const GroupLayout &group : partition)
    text += fmt::format("{}{}", text.empty() ? "" : "|", fmt::join(group.modes, ","));
  return text;
}

std::string rows_text(const Layout &layout) {
  std::string text;
  for (std::size_t m = 0; m < layout.dims.size(); ++m)
    if (layout.stored_dims[m] < layout.dims[m])
      text += fmt::format("{}{} of {} in mode {}", text.empty() ? "" : ", ", layout.stored_dims[m], layout.dims[m], m);
  return text.empty() ? "all" : text;
}

/// How many of each copy, as the groups stand; "none" where no copy is cut.
std::string tiles_text(const Layout &layout) {
  std::string text;
  bool cut = false;
  for (const formats::CopySize &copy : layout.copies) {
    text += fmt::format("{}{:.0f}", text.empty() ? "" : "|", copy.tiles);
    cut = cut || copy.tiles > 1;
  }
  return cut ? text : "none";
}

void add_single_modes(Layout &layout) {
  for (int m = 0; m < static_cast<int>(layout.dims.size()); ++m)
    layout.partition.push_back({{m}, 0, false});
}

void take_groups(Layout &layout, const Groups &groups) {
  for (int g = 0; g < groups.count(); ++g) {
    const bool several = groups.modes(g).size() > 1;
    layout.partition.push_back({groups.modes(g), several ? groups.cell_count(g) : 0, groups.shared(g)});
  }
}

/// Decides the format; the rows of coordinates have no numbers.
Storage settle_rows(Layout &layout, std::span<const i64> numbered, const StorageRequest &request) {
  Storage storage = decide_storage({numbered, layout.nnz, layout.type}, request);
  layout.format = storage.format;
  if (storage.format == Format::coo)
    numbered = layout.dims;
  layout.stored_dims.assign(numbered.begin(), numbered.end());
  return storage;
}

/// Groups and bytes of a sparse tensor whose format and rows are settled.
void settle(Layout &layout, Storage storage, const formats::EntryShape &x, const StorageRequest &request) {
  const int threads = request.threads;
  if (layout.format != Format::sorted) {
    add_single_modes(layout);
    layout.bytes = footprint_of(layout.format, x, storage.tiles, threads);
    if (layout.format == Format::blco)
      layout.blocks = formats::linear_bits(x.dims) > 64 ? saturated(x.combinations(formats::blco_bits(x.dims)))
                                                        : std::min<i64>(x.nnz, 1);
  } else {
    decide_groups(storage, x, request);
    for (const Group &modes : storage.partition) {
      layout.copies.push_back(formats::copy_size(x, modes, storage.tiles, threads));
      const i64 cells = saturated(layout.copies.back().cells);
      layout.partition.push_back({modes, cells, modes.size() > 1});
    }
    layout.bytes = formats::sorted_footprint(x, layout.copies, threads);
  }
  layout.groups = partition_text(layout.partition);
  layout.tiles = tiles_text(layout);
  layout.rows = rows_text(layout);
  layout.why = std::move(storage.why);
}

/// Bytes of the lists of rows that a process has in tensor/distribution: those that are here and those that go to
/// others.
double distribution_bytes(const Layout &layout) {
  double rows = 0;
  for (std::size_t m = 0; m < layout.dims.size(); ++m)
    rows += static_cast<double>(layout.stored_dims[m]) + static_cast<double>(layout.shared.shared[m]);
  return 8 * rows;
}

/// Sets what a process needs besides its tensor, which takes `storing` bytes while it is stored. Before that entries
/// travel, a column at a time, and their rows' owners are found; the entries stay until the tensor is there.
void set_arrival(Layout &layout, double storing) {
  const auto n = static_cast<double>(layout.nnz);
  const auto order = static_cast<double>(layout.dims.size());
  const auto value = static_cast<double>(size_of(layout.type));
  const bool narrow = *std::max_element(layout.dims.begin(), layout.dims.end()) <= (i64{1} << 31) - 1;
  const double index = narrow ? 4 : 8;
  const double entries = n * (order * index + value);
  constexpr double going = 12;         // of an entry: where it goes, and when
  constexpr double finding_owner = 96; // of a row: where it is in lists that are sent, sorted and answered
  const auto rows = static_cast<double>(*std::max_element(layout.stored_dims.begin(), layout.stored_dims.end()));
  const double peak = std::max({n * (going + std::max(index, value)) + entries, entries + finding_owner * rows,
                                entries + distribution_bytes(layout) + storing});
  layout.bytes.building = std::max(0.0, peak - layout.bytes.stored);
}

/// Rows of which so many are expected to have one of these entries; at most `dim`.
double rows_with(double held, double entries, double dim) {
  double less = held, more = dim;
  for (int step = 0; step < 60; ++step) {
    const double middle = (less + more) / 2;
    (kernels::gpu::expected_rows(middle, entries) < held ? less : more) = middle;
  }
  return more;
}

} // namespace

std::size_t Layout::group_of(int mode) const {
  std::size_t g = 0;
  while (std::count(partition[g].modes.begin(), partition[g].modes.end(), mode) == 0)
    ++g;
  return g;
}

i64 Layout::slabs() const {
  return dims[static_cast<std::size_t>(kernels::slowest_mode({dims, type, nullptr, strides}))];
}

Layout layout_of(std::span<const i64> dims, i64 nnz, ValueType type, const StorageRequest &request) {
  formats::check_dims(dims);
  if (nnz < 0)
    throw_error(Status::shape, "nnz = {}: expected nnz >= 0", nnz);
  Layout layout;
  layout.dims.assign(dims.begin(), dims.end());
  layout.nnz = nnz;
  layout.type = type;
  formats::NumberingSize numbering{layout.dims, {}};
  if (request.settings.numbers_rows())
    numbering = formats::numbering_size({dims, nnz, type}, request.settings.empty_rows);
  Storage storage = settle_rows(layout, numbering.dims, request);
  if (layout.format == Format::coo)
    numbering.bytes = {};
  // How entries lie in rows that are numbered is how they lie in all rows.
  formats::EntryShape numbered(layout.stored_dims, nnz, type, formats::spread_evenly(layout.dims, nnz));
  numbered.while_sorted = numbering.bytes.building;
  settle(layout, std::move(storage), numbered, request);
  layout.bytes.stored += numbering.bytes.stored;
  layout.assumptions.emplace_back("entries are spread evenly: of a tensor that is clustered, empty rows, cells of "
                                  "groups and segments of rows differ");
  layout.assumptions.emplace_back("no two entries are at the same coordinates");
  return layout;
}

Layout layout_of(std::span<const i64> dims, const ProcessPart &part, ValueType type, const StorageRequest &request) {
  Layout layout;
  layout.dims.assign(dims.begin(), dims.end());
  layout.nnz = saturated(part.entries / part.processes);
  layout.type = type;
  layout.shared.processes = part.processes;
  layout.shared.entries = saturated(part.entries);
  const auto whole = [](double rows) { return static_cast<i64>(std::llround(rows)); };
  double numbers = 0; // bytes of formats::Numbering
  std::vector<i64> box;
  for (std::size_t m = 0; m < dims.size(); ++m) {
    layout.stored_dims.push_back(std::max<i64>(1, whole(part.rows[m])));
    layout.shared.lent.push_back(whole(part.lent[m]));
    layout.shared.shared.push_back(layout.shared.lent.back()); // what all lend, all share
    layout.shared.partners.push_back(saturated(part.partners[m]));
    box.push_back(whole(rows_with(part.rows[m], part.entries / part.processes, static_cast<double>(dims[m]))));
    numbers += 8 * static_cast<double>(layout.stored_dims.back());
  }
  // Rows that have a number all have entries; how these lie in a process's box is how they lie in all of its rows.
  formats::EntryShape x(layout.stored_dims, layout.nnz, type, formats::spread_evenly(box, layout.nnz));
  Storage storage = decide_storage(x, request);
  layout.format = storage.format;
  settle(layout, std::move(storage), x, request);
  const double storing = layout.bytes.stored + layout.bytes.building;
  layout.bytes.stored += numbers + distribution_bytes(layout);
  set_arrival(layout, storing);
  return layout;
}

Layout layout_of(const EntriesView &entries, const StorageRequest &request) {
  Layout layout;
  layout.dims.assign(entries.dims.begin(), entries.dims.end());
  layout.nnz = entries.nnz;
  layout.type = entries.value_type;
  layout.assumptions.emplace_back("no two entries are at the same coordinates");
  const formats::Numbering numbering = request.settings.numbers_rows()
                                           ? formats::Numbering(entries, request.settings.empty_rows, request.threads)
                                           : formats::Numbering(entries.dims);
  Storage storage = settle_rows(layout, numbering.dims(), request);
  if (layout.format == Format::coo) {
    settle(layout, std::move(storage), {layout.dims, layout.nnz, layout.type}, request);
    return layout;
  }
  const formats::Packed packed = formats::pack_entries(entries, numbering, request.threads);
  double rows = 0; // bytes of the rows' list, which stays
  for (int m = 0; m < static_cast<int>(layout.dims.size()); ++m)
    rows += 8 * static_cast<double>(numbering.rows(m).size());
  formats::EntryShape shape(layout.stored_dims, layout.nnz, layout.type,
                            formats::combinations_of(packed, request.threads));
  shape.while_sorted = static_cast<double>(numbering.bytes()) - rows;
  settle(layout, std::move(storage), shape, request);
  layout.bytes.stored += rows;
  return layout;
}

Layout dense_layout(std::span<const i64> dims, ValueType type, const StorageRequest &request) {
  formats::check_dims(dims);
  Layout layout;
  layout.dims.assign(dims.begin(), dims.end());
  layout.stored_dims = layout.dims;
  layout.nnz = element_count(dims);
  layout.type = type;
  layout.sparse = false;
  Storage storage = dense_storage(static_cast<int>(dims.size()), type, request);
  layout.format = storage.format;
  layout.why = std::move(storage.why);
  layout.tiles = "none";
  layout.rows = "all";
  const Groups groups(dims, request.settings.groups_for(type));
  take_groups(layout, groups);
  layout.groups = groups.text();
  layout.bytes = formats::dense_footprint(dims, type);
  if (request.settings.borrow) { // an array in host memory, first index fastest
    layout.lent_bytes = static_cast<double>(layout.nnz) * static_cast<double>(size_of(type));
    layout.bytes.stored -= layout.lent_bytes;
    layout.in_place = !request.is_for_gpus();
  }
  return layout;
}

Layout layout_of(const Existing &x, int threads) {
  Layout layout;
  layout.exists = true;
  layout.dims.assign(x.dims.begin(), x.dims.end());
  layout.stored_dims.assign(x.stored_dims.begin(), x.stored_dims.end());
  layout.nnz = x.nnz;
  layout.type = x.type;
  layout.sparse = x.sparse;
  layout.format = x.format;
  layout.why = x.why;
  layout.shared = x.shared;
  layout.rows = rows_text(layout);
  layout.groups = x.groups.text();
  if (x.format == Format::sorted || x.format == Format::dense)
    take_groups(layout, x.groups);
  else
    add_single_modes(layout);
  formats::EntryShape shape(layout.stored_dims, layout.nnz, layout.type);
  shape.repeated = x.duplicates;
  for (std::size_t m = 0; m < layout.dims.size(); ++m)
    if (layout.stored_dims[m] < layout.dims[m])
      shape.while_sorted += formats::Marks::bytes_for(layout.dims[m]);
  if (x.format != Format::sorted) {
    layout.bytes = footprint_of(x.format, shape, {}, threads);
  } else {
    for (int g = 0; g < x.groups.count(); ++g) {
      const auto &view = std::get<kernels::SortedView>(x.forms[static_cast<std::size_t>(g)]);
      formats::CopySize copy;
      copy.dims.assign(view.dims.begin(), view.dims.end());
      copy.mode = view.mode;
      copy.cells = static_cast<double>(layout.partition[static_cast<std::size_t>(g)].cells);
      copy.rows = static_cast<double>(view.rows);
      copy.tiles = static_cast<double>(view.tiles);
      copy.key_bytes = view.key_bytes;
      copy.bits.assign(view.layout.bits.begin(), view.layout.bits.begin() + view.layout.order);
      formats::set_bytes(copy, shape, x.groups.modes(g), threads);
      layout.copies.push_back(std::move(copy));
    }
    layout.bytes = formats::sorted_footprint(shape, layout.copies, threads);
  }
  layout.tiles = tiles_text(layout);
  if (x.format == Format::blco)
    layout.blocks = std::get<kernels::BlcoView>(x.forms.front()).blocks;
  layout.lent_bytes = x.lent_bytes;
  layout.in_place = x.in_place;
  layout.strides = x.strides;
  if (x.lent_bytes > 0)
    layout.bytes = {};
  // What is there is known; what was needed besides is what the format needs.
  const double storing = layout.bytes.stored + layout.bytes.building;
  layout.bytes.stored = static_cast<double>(x.bytes);
  layout.bytes.building = std::max(0.0, storing + static_cast<double>(x.numbering_bytes) - layout.bytes.stored);
  if (x.sparse && !x.shared.shared.empty())
    set_arrival(layout, storing);
  return layout;
}

} // namespace td::plan
