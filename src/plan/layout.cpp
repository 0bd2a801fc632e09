#include "plan/layout.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/strides.hpp"
#include "formats/key.hpp"
#include "formats/merged.hpp"
#include "plan/grouping.hpp"
#include "plan/reasons.hpp"

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

void take_groups(Layout &layout, const Groups &groups, i64 rank) {
  for (int g = 0; g < groups.count(); ++g) {
    const bool several = groups.modes(g).size() > 1;
    layout.partition.push_back({groups.modes(g), several ? groups.cell_count(g) : 0, groups.shared(g, rank)});
  }
  layout.cell_bytes = cell_bytes_of(groups, layout.sparse, layout.type, rank);
}

/// Groups and bytes of a sparse tensor whose format and rows are settled.
void settle(Layout &layout, const formats::EntryShape &x, const LayoutRequest &request) {
  const std::string option = groups_of(request.options, layout.type);
  const formats::TileRule tiles = tile_rule_of(request.options, layout.type, request.gpu);
  require_meaning(request.options, layout.format.what, static_cast<int>(layout.dims.size()), layout.type, request.gpu);
  if (layout.format.what != "sorted") {
    layout.groups.why = why_no_groups;
    add_single_modes(layout);
    layout.bytes = footprint_of(layout.format.what, x, tiles, request.threads);
    if (layout.format.what == "blco")
      layout.blocks = formats::linear_bits(x.dims) > 64 ? saturated(x.combinations(formats::blco_bits(x.dims)))
                                                        : std::min<i64>(x.nnz, 1);
  } else {
    const bool gpu = request.gpu && option == "auto";
    Grouping grouping = sparse_groups(x, gpu ? "none" : option);
    layout.groups.why = why_groups(request.options, layout.type, request.gpu, std::move(grouping.why));
    for (const Group &modes : grouping.groups) {
      layout.copies.push_back(formats::copy_size(x, modes, tiles, request.threads));
      const i64 cells = saturated(layout.copies.back().cells);
      layout.partition.push_back({modes, cells, modes.size() > 1});
    }
    layout.bytes = formats::sorted_footprint(x, layout.copies, request.threads);
  }
  layout.groups.what = partition_text(layout.partition);
  layout.tiles = {tiles_text(layout), why_tiles(tiles, layout.format.what)};
  layout.empty_rows.what = rows_text(layout);
}

/// Format and rows. `x` is of the full dims.
formats::NumberingSize settle_rows(Layout &layout, const formats::EntryShape &x, const LayoutRequest &request) {
  const std::string rows = request.options.text("empty_rows");
  formats::NumberingSize numbering{layout.dims, {}};
  if (request.options.text("format") != "coo")
    numbering = formats::numbering_size(x, empty_rows_of(rows));
  layout.format =
      choose_format({numbering.dims, x.nnz, x.type}, request.options,
                    tile_rule_of(request.options, layout.type, request.gpu), request.threads, request.memory);
  if (layout.format.what == "coo")
    numbering = {layout.dims, {}};
  layout.stored_dims = numbering.dims;
  layout.empty_rows.why = why_empty_rows(rows, layout.format.what);
  return numbering;
}

} // namespace

std::size_t Layout::group_of(int mode) const {
  std::size_t g = 0;
  while (std::count(partition[g].modes.begin(), partition[g].modes.end(), mode) == 0)
    ++g;
  return g;
}

Layout layout_of(std::span<const i64> dims, i64 nnz, ValueType type, const LayoutRequest &request) {
  formats::check_dims(dims);
  if (nnz < 0)
    throw_error(Status::shape, "nnz = {}: expected nnz >= 0", nnz);
  Layout layout;
  layout.dims.assign(dims.begin(), dims.end());
  layout.nnz = nnz;
  layout.type = type;
  const formats::NumberingSize numbering = settle_rows(layout, {dims, nnz, type}, request);
  // How entries lie in rows that are numbered is how they lie in all rows.
  formats::EntryShape numbered(layout.stored_dims, nnz, type, formats::spread_evenly(layout.dims, nnz));
  numbered.while_sorted = numbering.bytes.building;
  settle(layout, numbered, request);
  layout.bytes.stored += numbering.bytes.stored;
  layout.assumptions.emplace_back("entries are spread evenly: of a tensor that is clustered, empty rows, cells of "
                                  "groups and pieces of rows differ");
  layout.assumptions.emplace_back("no two entries are at the same coordinates");
  return layout;
}

Layout layout_of(const EntriesView &entries, const LayoutRequest &request) {
  Layout layout;
  layout.dims.assign(entries.dims.begin(), entries.dims.end());
  layout.nnz = entries.nnz;
  layout.type = entries.value_type;
  layout.assumptions.emplace_back("no two entries are at the same coordinates");
  if (formats::linear_bits(layout.dims) > formats::max_linear_bits && request.options.text("empty_rows") == "keep") {
    settle_rows(layout, {layout.dims, layout.nnz, layout.type}, request);
    settle(layout, {layout.dims, layout.nnz, layout.type}, request);
    return layout;
  }
  const bool coo = request.options.text("format") == "coo";
  const formats::Numbering numbering =
      coo ? formats::Numbering(entries.dims)
          : formats::Numbering(entries, empty_rows_of(request.options.text("empty_rows")), request.threads);
  layout.stored_dims.assign(numbering.dims().begin(), numbering.dims().end());
  layout.format =
      choose_format({layout.stored_dims, layout.nnz, layout.type}, request.options,
                    tile_rule_of(request.options, layout.type, request.gpu), request.threads, request.memory);
  layout.empty_rows.why = why_empty_rows(request.options.text("empty_rows"), layout.format.what);
  if (layout.format.what == "coo") {
    layout.stored_dims = layout.dims;
    settle(layout, {layout.dims, layout.nnz, layout.type}, request);
    return layout;
  }
  const formats::Packed packed = formats::pack_entries(entries, numbering, request.threads);
  double rows = 0; // bytes of the rows' list, which stays
  for (int m = 0; m < static_cast<int>(layout.dims.size()); ++m)
    rows += 8 * static_cast<double>(numbering.rows(m).size());
  formats::EntryShape shape(layout.stored_dims, layout.nnz, layout.type,
                            formats::combinations_of(packed, request.threads));
  shape.while_sorted = static_cast<double>(numbering.bytes()) - rows;
  settle(layout, shape, request);
  layout.bytes.stored += rows;
  return layout;
}

Layout dense_layout(std::span<const i64> dims, ValueType type, const LayoutRequest &request) {
  formats::check_dims(dims);
  Layout layout;
  layout.dims.assign(dims.begin(), dims.end());
  layout.stored_dims = layout.dims;
  layout.nnz = element_count(dims);
  layout.type = type;
  layout.sparse = false;
  require_meaning(request.options, "dense", static_cast<int>(dims.size()), type, request.gpu);
  layout.format = {"dense", why_dense};
  layout.tiles = {"none", why_tiles({}, "dense")};
  layout.empty_rows = {"all", "every row of a dense tensor takes part"};
  take_groups(layout, Groups(dims, type, groups_of(request.options, type)), request.rank);
  layout.groups = {partition_text(layout.partition),
                   why_groups(request.options, type, false, why_dense_groups(request.options.text("groups")))};
  layout.bytes = formats::dense_footprint(dims, type);
  return layout;
}

Layout layout_of(const Tensor &x, const LayoutRequest &request) {
  Layout layout;
  layout.exists = true;
  layout.dims.assign(x.dims().begin(), x.dims().end());
  layout.stored_dims.assign(x.stored_dims().begin(), x.stored_dims().end());
  layout.nnz = x.facts().nnz;
  layout.type = x.type();
  layout.sparse = x.sparse();
  layout.format = {std::string(x.format()), x.reasons().format};
  layout.empty_rows = {rows_text(layout), x.reasons().empty_rows};
  layout.groups = {x.groups().text(), x.reasons().groups};
  if (x.format() == "sorted" || x.format() == "dense")
    take_groups(layout, x.groups(), request.rank);
  else
    add_single_modes(layout);
  formats::EntryShape shape(layout.stored_dims, layout.nnz, layout.type);
  shape.repeated = x.facts().duplicates;
  for (std::size_t m = 0; m < layout.dims.size(); ++m)
    if (layout.stored_dims[m] < layout.dims[m])
      shape.while_sorted += formats::Marks::bytes_for(layout.dims[m]);
  if (x.format() != "sorted") {
    layout.bytes = footprint_of(x.format(), shape, {}, request.threads);
  } else {
    for (int g = 0; g < x.groups().count(); ++g) {
      const auto view = std::get<kernels::SortedView>(x.merged_view(g, OnHost::sizes));
      formats::CopySize copy;
      copy.dims.assign(view.dims.begin(), view.dims.end());
      copy.mode = view.mode;
      copy.cells = static_cast<double>(layout.partition[static_cast<std::size_t>(g)].cells);
      copy.rows = static_cast<double>(view.rows);
      copy.tiles = static_cast<double>(view.tiles);
      copy.key_bytes = view.key_bytes;
      copy.bits.assign(view.layout.bits.begin(), view.layout.bits.begin() + view.layout.order);
      formats::set_bytes(copy, shape, x.groups().modes(g), request.threads);
      layout.copies.push_back(std::move(copy));
    }
    layout.bytes = formats::sorted_footprint(shape, layout.copies, request.threads);
  }
  layout.tiles = {tiles_text(layout), x.reasons().tiles};
  if (x.format() == "blco")
    layout.blocks = std::get<kernels::BlcoView>(x.view(0, OnHost::sizes)).blocks;
  // What is there is known; what was needed besides is what the format needs.
  const double peak = layout.bytes.stored + layout.bytes.building + static_cast<double>(x.numbering().bytes());
  layout.bytes.stored = static_cast<double>(x.bytes());
  layout.bytes.building = std::max(0.0, peak - layout.bytes.stored);
  return layout;
}

} // namespace td::plan
