#include "tensor/part.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/memory_order.hpp"
#include "tensor/spans.hpp"

namespace td::tensor {

namespace {

/// Rows of which the entries among some are wanted.
struct Wanted {
  Range rows;
  Range entries;
};

/// The result is in the order of the rows.
std::vector<Wanted> wanted_of(const kernels::SortedView &x, const Load &load) {
  std::vector<Wanted> wanted;
  for (const Range &rows : load.whole)
    wanted.push_back({rows, {0, x.nnz}});
  for (const Load::RowSegment &row : load.split)
    wanted.push_back({{row.row, row.row + 1}, row.entries});
  std::sort(wanted.begin(), wanted.end(), [](const Wanted &a, const Wanted &b) { return a.rows.begin < b.rows.begin; });
  return wanted;
}

/// Adds what is wanted among slots that list rows in ascending order.
void select(const kernels::SortedView &x, const std::vector<Wanted> &wanted, Range slots, Selection &to) {
  const i64 *const end = x.row_index + slots.end;
  for (i64 slot = slots.begin; slot < slots.end;) {
    const auto next = std::upper_bound(wanted.begin(), wanted.end(), x.row_index[slot],
                                       [](i64 row, const Wanted &some) { return row < some.rows.end; });
    if (next == wanted.end())
      return;
    const i64 *const first = std::lower_bound(x.row_index + slot, end, next->rows.begin);
    const i64 *const last = std::lower_bound(first, end, next->rows.end);
    const Range found{first - x.row_index, last - x.row_index};
    const Range entries{std::max(x.row_begin[found.begin], next->entries.begin),
                        std::min(x.row_begin[found.end], next->entries.end)};
    if (entries.begin < entries.end) {
      to.entries.add(entries);
      to.lists.add(found);
    }
    slot = found.end;
  }
}

/// The range from the first row of a load to the last, with rows of others between them.
Range rows_of(const Load &load) {
  Range rows{std::numeric_limits<i64>::max(), 0};
  const auto include = [&](Range more) { rows = {std::min(rows.begin, more.begin), std::max(rows.end, more.end)}; };
  for (const Range &more : load.whole)
    include(more);
  for (const Load::RowSegment &row : load.split)
    include({row.row, row.row + 1});
  return rows.begin < rows.end ? rows : Range{};
}

/// Gives those of the ranges that begin at begin[0 .. count] which hold some of the entries, at least one.
Range ranges_with(const i64 *begin, i64 count, Range entries) {
  const auto holding = [&](i64 entry) { return std::upper_bound(begin, begin + count + 1, entry) - begin - 1; };
  return {holding(entries.begin), holding(entries.end - 1) + 1};
}

} // namespace

Selection select_load(const kernels::SortedView &x, const Load &load) {
  const std::vector<Wanted> wanted = wanted_of(x, load);
  Selection some;
  for (i64 tile = 0; tile < x.tiles; ++tile) {
    const Range slots{x.tile_begin[tile], x.tile_begin[tile + 1]};
    const i64 light = x.tiles > 1 ? x.tile_light[tile] : slots.begin;
    select(x, wanted, {slots.begin, light}, some);
    select(x, wanted, {light, slots.end}, some);
  }
  return some;
}

Selection select_range(const kernels::TensorView &x, Range entries) {
  Selection some;
  some.entries.add(entries);
  if (entries.size() == 0)
    return some;
  if (const auto *sorted = std::get_if<kernels::SortedView>(&x))
    some.lists.add(ranges_with(sorted->row_begin, sorted->rows, entries));
  else if (const auto *blco = std::get_if<kernels::BlcoView>(&x))
    some.lists.add(ranges_with(blco->block_begin, blco->blocks, entries));
  return some;
}

Selection select_slabs(const kernels::DenseView &x, Range slabs) {
  const auto mode = static_cast<std::size_t>(kernels::slowest_mode(x));
  const i64 slab = kernels::entries_of(x) / x.dims[mode];
  Selection some;
  some.entries.add({slabs.begin * slab, slabs.end * slab});
  some.whole_dims.assign(x.dims.begin(), x.dims.end());
  some.dims = some.whole_dims;
  some.dims[mode] = slabs.size();
  return some;
}

Part::Part(const Tensor &x, const Sharding &sharding, int worker, kernels::Backend &backend, Communicator &others)
    : x_(x), sharding_(sharding), worker_(worker), backend_(backend), others_(others) {
  const int workers = sharding.workers();
  if (!backend.has_own_memory() || workers == 1)
    return;
  if (!x.sparse()) {
    const i64 slabs = x.dims()[static_cast<std::size_t>(x.slab_mode())];
    if (!plan::takes_slabs(slabs, workers, x.settings().sharding, sharding.deterministic())) {
      hold(0, slabs);
      return;
    }
    slabs_ = part_of({0, slabs}, worker, workers);
    forms_.emplace_back(x.form(0), select_slabs(x.dense()->view(), slabs_));
  }
  if (sharding.by_entries()) {
    const kernels::TensorView form = x.form(0).view(OnHost::lists);
    forms_.emplace_back(x.form(0), select_range(form, part_of({0, x.stored_entries()}, worker, workers)));
  }
  const int copies = x.partitioned_by_rows() ? x.groups().count() : 1;
  if (x.sparse() && !sharding.by_entries() && (sharding.deterministic() || !x.partitioned_by_rows())) {
    for (int number = 0; number < copies; ++number)
      hold(number, x.stored_entries());
    return;
  }
  for (int number = 0; number < copies && x.sparse() && x.partitioned_by_rows(); ++number) {
    const plan::Group &modes = x.groups().modes(number);
    const bool alone = modes.size() == 1;
    const StoredForm &form = x.form(number);
    if (const Selection *made = alone ? sharding.selected(modes.front(), worker) : nullptr) {
      forms_.emplace_back(form, *made);
      continue;
    }
    const auto copy = std::get<kernels::SortedView>(form.view(OnHost::lists));
    const Load &load = alone ? sharding.load(modes.front(), worker) : sharding.cell_load(number, worker);
    forms_.emplace_back(form, select_load(copy, load));
  }
  for (const StoredForm &form : forms_) {
    const FormBytes bytes = bytes_of(form.view(OnHost::sizes));
    all_.entries += bytes.entries;
    all_.lists += bytes.lists;
  }
}

void Part::hold(int number, i64 units) {
  const FormBytes all = bytes_of(x_.form(number).view(OnHost::sizes));
  const i64 each = units > 0 ? kernels::entries_of(x_.form(number).view(OnHost::sizes)) / units : 0;
  std::vector<Range> &held = held_.emplace_back();
  for (int worker = 0; worker < sharding_.workers(); ++worker) {
    const Range own = part_of({0, units}, worker, sharding_.workers());
    held.push_back({own.begin * each, own.end * each});
  }
  all_.entries += held[static_cast<std::size_t>(worker_)].size() * all.each;
  all_.lists += all.lists;
}

bool Part::mttkrp(int mode, kernels::MttkrpArgs args) const {
  if (sharding_.by_entries()) {
    args.entries = has_own() ? Range{0, forms_.front().selection()->entries.count()}
                             : part_of(args.entries, worker_, sharding_.workers());
    (has_own() ? place(0, forms_.front()) : x_.view(mode, backend_)).mttkrp(backend_, args);
    return true;
  }
  if (slabs_.size() > 0) {
    sum_slabs(x_.dims(), args);
    return mode != x_.slab_mode();
  }
  const Load &load = sharding_.load(mode, worker_);
  if (gathers()) {
    const int number = x_.partitioned_by_rows() && x_.sparse() ? x_.groups().group_of(mode) : 0;
    Gather gather = gather_of(number);
    for (int worker = 0; worker < sharding_.workers(); ++worker) {
      const Ranges &rows = sharding_.load(mode, worker).whole; // evenly: one range of rows each
      gather.rows.push_back(takes_all_rows() ? args.rows : rows.empty() ? Range{} : rows.front());
    }
    args.rows = gather.rows[static_cast<std::size_t>(worker_)];
    Placement form = place_held(number);
    form.set_gather(gather);
    form.mttkrp(backend_, args);
  } else if (has_own())
    mttkrp_part(mode, args, own_load(x_.groups().group_of(mode), load));
  else
    compute(x_.view(mode, backend_), args, load);
  return false;
}

bool Part::cuts_rows(int mode) const {
  if (!x_.sparse() || !x_.partitioned_by_rows() || !has_own() || gathers() || sharding_.by_entries())
    return false;
  const int number = x_.groups().group_of(mode);
  return !x_.groups().shared(number) && std::get<kernels::SortedView>(x_.form(number).view(OnHost::sizes)).tiles == 1;
}

std::vector<LoadPart> Part::cut_load(int mode, std::span<const i64> before) const {
  const int number = x_.groups().group_of(mode);
  const Range all = rows_of(sharding_.load(mode, worker_));
  std::vector<i64> rows; // where parts begin, and where the last one ends
  rows.push_back(all.begin);
  for (const i64 row : before)
    rows.push_back(std::clamp(row, rows.back(), all.end));
  rows.push_back(all.end);
  const std::vector<kernels::RowPlace> places = places_of(number, rows);
  std::vector<LoadPart> parts;
  for (std::size_t k = 0; k + 1 < rows.size(); ++k) {
    const Range some{rows[k], rows[k + 1]};
    parts.push_back({some, {places[k].entry, places[k + 1].entry}, places[k + 1].slot - places[k].slot == some.size()});
  }
  return parts;
}

// Lists that are on the host need not be on the device yet. Where all of a part has no room there, they have come to
// the host.
std::vector<kernels::RowPlace> Part::places_of(int number, std::span<const i64> rows) const {
  const StoredForm &own = forms_[static_cast<std::size_t>(number)];
  std::vector<kernels::RowPlace> places(rows.size());
  if (own.selection()->entries.count() == 0)
    return places;
  std::vector<kernels::RowQuery> wanted;
  for (const i64 row : rows)
    wanted.push_back({{0, own.selection()->lists.count()}, row});
  const auto away = [&] { return detail::lists_are_away(own.whole().view(OnHost::sizes)); };
  if (away()) {
    if (const Placement there = place(number, own); away()) {
      const FormView form = there.whole("a worker's load in parts");
      const auto lists = std::get<kernels::SortedView>(form.view());
      backend_.find_rows(lists.row_index, lists.row_begin, wanted, places);
      return places;
    }
  }
  const auto lists = std::get<kernels::SortedView>(own.view(OnHost::lists));
  std::transform(wanted.begin(), wanted.end(), places.begin(), [&](const kernels::RowQuery &row) {
    return kernels::find_row(lists.row_index, lists.row_begin, row);
  });
  return places;
}

Range Part::merged_mttkrp(int group, kernels::MttkrpArgs args) const {
  const Load &load = sharding_.cell_load(group, worker_);
  if (gathers()) {
    Gather gather = gather_of(group);
    gather.rows.assign(static_cast<std::size_t>(sharding_.workers()), args.rows);
    Placement form = place_held(group);
    form.set_gather(gather);
    form.mttkrp(backend_, args);
    return args.rows;
  }
  if (has_own())
    compute_own(group, args, own_load(group, load));
  else
    compute(x_.merged_view(group, backend_), args, load);
  Range cells{args.out.rows, 0};
  const auto include = [&](Range more) { cells = {std::min(cells.begin, more.begin), std::max(cells.end, more.end)}; };
  for (const Range &range : load.whole)
    include(range);
  for (const Load::RowSegment &row : load.split)
    if (row.entries.size() > 0)
      include({row.row, row.row + 1});
  return cells.size() > 0 ? cells : Range{};
}

Range Part::cells_of(const plan::PartialProduct &product, int worker) const {
  if (!product.wraps) // of which a slab has cells of its own
    return product.cells_of(worker, sharding_.workers());
  const i64 slab = kernels::entries_of(x_.form(0).view(OnHost::sizes)) / product.merged_dims.back();
  const Range held = held_.front()[static_cast<std::size_t>(worker)];
  return {held.begin / slab * product.merged_dims.front(), held.end / slab * product.merged_dims.front()};
}

Range Part::gathered_product(const plan::PartialProduct &product, kernels::MttkrpArgs args) const {
  Placement form = place_held(0);
  form.set_dense_dims(product.merged_dims);
  Gather gather = gather_of(0);
  for (int worker = 0; worker < sharding_.workers(); ++worker)
    gather.rows.push_back(takes_all_rows() ? args.rows : cells_of(product, worker));
  args.rows = gather.rows[static_cast<std::size_t>(worker_)];
  if (takes_all_rows() || !product.wraps)
    form.set_gather(gather);
  const i64 left = product.merged_dims.front();
  if (product.wraps)
    form.mttkrp_slabs(backend_, args.factors, args.out, {args.rows.begin / left, args.rows.end / left},
                      sharding_.deterministic());
  else
    form.mttkrp(backend_, args);
  return args.rows;
}

Range Part::partial_product(const plan::PartialProduct &product, kernels::MttkrpArgs args) const {
  if (gathers())
    return gathered_product(product, args);
  const std::span<const i64> dims = product.merged_dims;
  const bool own = slabs_.size() > 0;
  const i64 of_slab = dims.back() / x_.dims().back(); // indices of the last merged mode, where it has the last mode
  const Range last{own ? slabs_.begin * of_slab : 0, own ? slabs_.end * of_slab : dims.back()};
  Placement there = own ? place(0, forms_.front()) : x_.whole_view(backend_);
  if (product.wraps) {
    const i64 left = dims.front();
    std::vector<i64> held(dims.begin(), dims.end());
    held.back() = last.size();
    there.set_dense_dims(held);
    const Range cells =
        own ? Range{left * last.begin, left * last.end} : product.cells_of(worker_, sharding_.workers());
    there.mttkrp_slabs(backend_, args.factors, args.out.slice(left * last.begin, left * last.end),
                       {cells.begin / left - last.begin, cells.end / left - last.begin}, sharding_.deterministic());
    return cells;
  }
  if (own) {
    sum_slabs(dims, args);
    return args.mode + 1 < std::ssize(dims) ? args.rows : last;
  }
  there.set_dense_dims(dims);
  args.rows = product.cells_of(worker_, sharding_.workers());
  if (args.rows.size() > 0)
    there.mttkrp(backend_, args);
  return args.rows;
}

void Part::cells_mttkrp(int group, kernels::MttkrpArgs args) const {
  if (!has_own())
    return x_.cells_view(group, backend_).mttkrp(backend_, args);
  const kernels::CooView all = x_.groups().cells(group).view();
  const StoredForm own(all, select_range(all, args.entries));
  args.entries = {0, args.entries.size()};
  place(x_.groups().count() + group, own).mttkrp(backend_, args);
}

Placement Part::own_view() const { return place(x_.whole_form(), forms_[static_cast<std::size_t>(x_.whole_form())]); }

std::vector<ConstMatrix> Part::own_factors(std::span<const ConstMatrix> factors) const {
  std::vector<ConstMatrix> own(factors.begin(), factors.end());
  if (slabs_.size() > 0)
    own[static_cast<std::size_t>(x_.slab_mode())] =
        own[static_cast<std::size_t>(x_.slab_mode())].slice(slabs_.begin, slabs_.end);
  return own;
}

Placement Part::view_of(Range entries) const {
  if (gathers())
    return place_held(x_.whole_form());
  if (!has_own())
    return x_.whole_view(backend_);
  const StoredForm &form = x_.form(x_.whole_form());
  return place(2 * x_.groups().count(), StoredForm(form, select_range(form.view(OnHost::lists), entries)));
}

Placement Part::place(int number, const StoredForm &some) const {
  FormBytes all = all_;
  if (number >= x_.groups().count()) {
    const FormBytes more = bytes_of(some.view(OnHost::sizes));
    all.entries += more.entries;
    all.lists += more.lists;
  }
  return x_.place({number, {sharding_.workers(), worker_, sharding_.deterministic()}}, some, all, backend_);
}

Placement Part::place_held(int number) const {
  return x_.place({number, {sharding_.workers(), worker_, sharding_.deterministic()}}, x_.form(number), all_, backend_,
                  &held_[static_cast<std::size_t>(number)][static_cast<std::size_t>(worker_)]);
}

void Part::compute(const Placement &whole, kernels::MttkrpArgs args, const Load &load) const {
  for (const Range &rows : load.whole) {
    args.rows = rows;
    whole.mttkrp(backend_, args);
  }
  for (const auto &[row, entries] : load.split) {
    args.rows = {row, row + 1};
    args.entries = entries;
    whole.mttkrp(backend_, args);
  }
}

// Slabs are a tensor by themselves, with some rows of the last factor or of the result.
void Part::sum_slabs(std::span<const i64> dims, const kernels::MttkrpArgs &args) const {
  const i64 first = forms_.front().selection()->entries.first();
  const SlabStep step({dims, x_.type(), nullptr, x_.dense()->strides}, args,
                      {first, first + forms_.front().selection()->entries.count()});
  Placement own = place(0, forms_.front());
  own.set_dense_dims(step.dims());
  kernels::MttkrpArgs of_slabs = step.args();
  of_slabs.add = args.add;
  own.mttkrp(backend_, of_slabs);
}

// A part has entries of the rows of its load alone, so one call does for all rows from the first of them to the last:
// the entries are walked once, and rows between that others own become zeros here.
void Part::compute_own(int number, kernels::MttkrpArgs args, const LoadPart &part) const {
  args.rows = part.rows;
  args.entries = part.entries;
  args.full = part.full;
  if (args.rows.size() == 0)
    return;
  if (args.entries.size() == 0)
    return backend_.set_zero(args.out.slice(args.rows.begin, args.rows.end));
  place(number, forms_[static_cast<std::size_t>(number)]).mttkrp(backend_, args);
}

LoadPart Part::own_load(int number, const Load &load) const {
  return {rows_of(load), {0, kernels::entries_of(forms_[static_cast<std::size_t>(number)].view(OnHost::sizes))}};
}

void Part::mttkrp_part(int mode, kernels::MttkrpArgs args, const LoadPart &part) const {
  compute_own(x_.groups().group_of(mode), args, part);
}

} // namespace td::tensor
