#include "plan/tensor.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "core/clock.hpp"
#include "core/sentence.hpp"
#include "core/strides.hpp"
#include "formats/merged.hpp"
#include "plan/grouping.hpp"
#include "plan/needs.hpp"
#include "plan/reasons.hpp"

namespace td::plan {

namespace {

/// Where a device can make what the options ask for: copies by single modes, or BLCO.
std::unique_ptr<kernels::Building> begin_building(kernels::Backend *builder, const EntriesView &entries,
                                                  const Options &options) {
  const std::string groups = options.text("groups");
  if (builder == nullptr || options.text("format") == "coo" || (groups != "auto" && groups != "none") ||
      formats::linear_bits(entries.dims) > formats::max_linear_bits)
    return nullptr;
  return builder->begin_building(entries);
}

} // namespace

std::shared_ptr<const Tensor> Tensor::make_sparse(const EntriesView &entries, const Options &options, int threads,
                                                  std::string source, Target target, kernels::Backend *builder) {
  return make_sparse(formats::Given(entries), options, threads, std::move(source), target, builder);
}

std::shared_ptr<const Tensor> Tensor::make_sparse(const formats::Given &given, const Options &options, int threads,
                                                  std::string source, Target target, kernels::Backend *builder) {
  const auto begin = Clock::now();
  const EntriesView &entries = given.view();
  formats::check_shape(entries);
  auto building = target == Target::gpu ? begin_building(builder, entries, options) : nullptr;
  if (building)
    formats::check_entries(given, *building);
  else
    formats::check_entries(given.on_host(), threads);
  std::shared_ptr<Tensor> x(new Tensor(entries.dims));
  x->type_ = entries.value_type;
  x->source_ = std::move(source);
  x->take_options(options);
  x->target_ = target;
  const bool gpu = target == Target::gpu;
  const formats::TileRule tiles = tile_rule_of(options, x->type_, gpu);
  const HostMemory memory = host_memory(options, 0);
  const auto empty_rows = empty_rows_of(options.text("empty_rows"));
  if (building)
    x->numbering_ = formats::Numbering(entries, empty_rows, *building, threads);
  else if (options.text("format") != "coo")
    x->numbering_ = formats::Numbering(given.on_host(), empty_rows, threads);
  const Choice format = choose_format({x->stored_dims(), entries.nnz, x->type_}, options, tiles, threads, memory);
  x->format_ = format.what;
  x->reasons_.format = format.why;
  if (x->format_ == "coo")
    x->numbering_ = formats::Numbering(entries.dims);
  x->reasons_.empty_rows = why_empty_rows(options.text("empty_rows"), x->format_);
  x->reasons_.groups = why_no_groups;
  x->reasons_.tiles = why_tiles(tiles, x->format_);
  require_meaning(options, x->format_, x->order(), x->type_, gpu);
  require_storage(x->format_, {x->stored_dims(), entries.nnz, x->type_}, tiles, threads, memory);
  x->groups_ = std::make_unique<const Groups>(x->order());
  if (building && x->format_ != "coo")
    x->store_built(*building, *builder, given, options);
  else
    x->store(given.on_host(), options, threads);
  x->list_forms();
  x->build_seconds_ = seconds_since(begin);
  return x;
}

void Tensor::take_options(const Options &options) {
  options_ = options.in_scope("tensor");
  sharding_ = options.text("sharding");
  conflicts_ = conflicts_of(options.text("conflicts"));
  precision_ = precision_of(options, type_);
}

void Tensor::store(const EntriesView &entries, const Options &options, int threads) {
  const bool refuse_duplicates = options.text("duplicates") == "error";
  if (formats::linear_bits(stored_dims()) > formats::max_linear_bits) {
    auto canonical = formats::build_canonical(entries, refuse_duplicates, threads);
    facts_ = facts_of(canonical.coo.values, threads);
    facts_.duplicates = canonical.duplicates;
    coo_ = std::move(canonical.coo);
    return;
  }

  formats::Packed packed = formats::build_packed(entries, numbering_, refuse_duplicates, threads);
  numbering_.forget_indices();
  facts_ = facts_of(packed.values, threads);
  facts_.duplicates = packed.duplicates;
  if (format_ == "coo")
    coo_ = formats::unpack(packed, threads);
  else if (format_ == "blco")
    blco_ = formats::build_blco(std::move(packed), threads);
  else
    sort(packed, threads);
}

void Tensor::store_built(kernels::Building &building, kernels::Backend &builder, const formats::Given &given,
                         const Options &options) {
  const auto packed = formats::build_packed(building, given, numbering_, options.text("duplicates") == "error");
  numbering_.forget_indices();
  facts_ = facts_of(building);
  facts_.duplicates = packed.duplicates;
  // A copy that leaves too little room to make the next one does not stay.
  const auto keep = [&](auto &&built, i64 to_come) {
    const auto number = static_cast<int>(forms_.size());
    resident_.adopt(builder, number, forms_.emplace_back(built.view, builder.memory(), std::move(built.arrays)),
                    to_come > 0 ? builder.room_to_build(given.view()) : 0);
    return std::move(built.rest);
  };
  if (format_ == "blco") {
    blco_ = keep(formats::build_blco(packed), 0);
    return;
  }
  const formats::TileRule tiles = tile_rule_of(options_, type_, true);
  for (int mode = 0; mode < order(); ++mode)
    sorted_.push_back(
        keep(formats::build_sorted(packed, mode, formats::tile_bits(tiles, packed.dims, mode, building.size())),
             order() - 1 - mode));
  auto [alone, why] = sparse_groups({packed.dims, building.size(), type_}, "none");
  reasons_.groups = why_groups(options_, type_, true, std::move(why));
  groups_ = std::make_unique<const Groups>(stored_dims(), type_, groups_of(options_, type_), alone,
                                           std::vector<formats::Coo>(static_cast<std::size_t>(order())));
}

void Tensor::list_forms() {
  if (!forms_.empty())
    return;
  for (const formats::Sorted &copy : sorted_)
    forms_.emplace_back(copy.view());
  if (dense_)
    forms_.emplace_back(dense_->view());
  if (coo_)
    forms_.emplace_back(coo_->view());
  if (blco_)
    forms_.emplace_back(blco_->view());
}

void Tensor::sort(formats::Packed &packed, int threads) {
  const std::string groups = groups_of(options_, type_);
  // Shared partial products are for the caches of a CPU. A partition that is asked for by name is made.
  const bool gpu = target_ == Target::gpu;
  const formats::TileRule tiles = tile_rule_of(options_, type_, gpu);
  auto [partition, why] = sparse_groups({packed.dims, packed.nnz(), type_, formats::combinations_of(packed, threads)},
                                        gpu && groups == "auto" ? "none" : groups);
  reasons_.groups = why_groups(options_, type_, gpu, std::move(why));
  std::vector<formats::Coo> cells(partition.size());
  for (std::size_t g = 0; g < partition.size(); ++g) {
    const Group &modes = partition[g];
    if (modes.size() == 1) {
      const int mode = modes.front();
      const auto bits = formats::tile_bits(tiles, packed.dims, mode, packed.nnz());
      sorted_.push_back(formats::build_sorted(packed, mode, bits, threads));
      continue;
    }
    formats::SortedCells merged = formats::build_sorted_cells(packed, modes, tiles, threads);
    sorted_.push_back(std::move(merged.sorted));
    cells[g] = std::move(merged.cells);
  }
  groups_ = std::make_unique<const Groups>(stored_dims(), type_, groups, partition, std::move(cells));
}

std::shared_ptr<const Tensor> Tensor::make_dense(const DenseArrayView &array, const Options &options, int threads,
                                                 std::string source, Target target) {
  const auto begin = Clock::now();
  formats::check_dims(array.dims);
  const i64 elements = element_count(array.dims);
  require_meaning(options, "dense", static_cast<int>(array.dims.size()), array.value_type, target == Target::gpu);
  require_storage("dense", {array.dims, elements, array.value_type}, {}, threads, host_memory(options, 0));
  std::shared_ptr<Tensor> x(new Tensor(array.dims));
  x->type_ = array.value_type;
  x->groups_ = std::make_unique<const Groups>(array.dims, array.value_type, groups_of(options, x->type_));
  x->dense_ = formats::build_dense(array, threads);
  x->source_ = std::move(source);
  x->take_options(options);
  x->target_ = target;
  x->format_ = "dense";
  x->reasons_ = {why_dense, "every row of a dense tensor takes part",
                 why_groups(options, x->type_, false, why_dense_groups(options.text("groups"))),
                 why_tiles({}, "dense")};
  x->list_forms();
  x->facts_ = facts_of(x->dense_->values, threads);
  x->build_seconds_ = seconds_since(begin);
  return x;
}

i64 Tensor::bytes() const {
  i64 total = 0;
  if (coo_)
    total += coo_->bytes();
  if (blco_)
    total += blco_->bytes();
  if (dense_)
    total += dense_->bytes();
  for (std::size_t g = 0; g < sorted_.size(); ++g) {
    const int group = static_cast<int>(g);
    total += sorted_[g].bytes() + (groups_->modes(group).size() > 1 ? groups_->cells(group).bytes() : 0);
  }
  for (const StoredForm &form : forms_)
    total += form.built_bytes();
  return total + numbering_.bytes();
}

std::string Tensor::describe() const {
  const std::string shape = fmt::format("{}", fmt::join(dims_, " x "));
  const std::string size = size_text(bytes());
  if (dense_)
    return fmt::format("dense {}, {}, {}, {}", shape, count_text(facts_.nnz, "element", "elements"), name_of(type_),
                       size);
  std::string parts;
  if (!sorted_.empty())
    parts = count_text(static_cast<i64>(sorted_.size()), "copy", "copies") + ", ";
  else if (blco_)
    parts = count_text(blco_->block_begin.size() - 1, "block", "blocks") + ", ";
  return fmt::format("sparse {}, {}, {}, {} ({}{})", shape, count_text(facts_.nnz, "entry", "entries"), name_of(type_),
                     format_, parts, size);
}

const StoredForm &Tensor::stored(int number) const {
  return forms_[sorted_.empty() ? 0 : static_cast<std::size_t>(number)];
}

Placement Tensor::placed(int number, kernels::Backend &backend) const {
  FormBytes all;
  for (const StoredForm &form : forms_) {
    const FormBytes bytes = bytes_of(form.view(OnHost::sizes));
    all.entries += bytes.entries;
    all.lists += bytes.lists;
  }
  return resident_.on(backend, sorted_.empty() ? 0 : number, stored(number), all);
}

int Tensor::form_of(int mode) const {
  const int group = groups_->group_of(mode);
  if (!sorted_.empty() && groups_->modes(group).size() > 1)
    throw_error(Status::internal, "no copy is sorted by mode {} alone", mode);
  return group;
}

kernels::TensorView Tensor::view(int mode, OnHost needed) const { return stored(form_of(mode)).view(needed); }

Placement Tensor::view(int mode, kernels::Backend &backend) const { return placed(form_of(mode), backend); }

Placement Tensor::whole_view(kernels::Backend &backend) const { return placed(whole_form(), backend); }

int Tensor::whole_form() const {
  int group = 0;
  while (!sorted_.empty() && groups_->modes(group).size() > 1)
    ++group;
  return group;
}

kernels::TensorView Tensor::merged_view(int group, OnHost needed) const {
  kernels::TensorView view = stored(group).view(needed);
  if (auto *dense = std::get_if<kernels::DenseView>(&view))
    dense->dims = groups_->merged_dims(group);
  return view;
}

Placement Tensor::merged_view(int group, kernels::Backend &backend) const {
  Placement placement = placed(group, backend);
  placement.set_dense_dims(groups_->merged_dims(group));
  return placement;
}

Placement Tensor::cells_view(int group, kernels::Backend &backend) const {
  return resident_.on(backend, groups_->count() + group, groups_->cells(group).view());
}

kernels::CooView Tensor::coordinates(std::optional<formats::Coo> &holder, int threads) const {
  if (dense_)
    throw_error(Status::unsupported, "coordinates of a dense tensor, expected a sparse one");
  if (coo_)
    return coo_->view();
  const kernels::TensorView view = stored(whole_form()).view(OnHost::all);
  if (blco_)
    holder = formats::decode(std::get<kernels::BlcoView>(view), threads);
  else
    holder = formats::decode(std::get<kernels::SortedView>(view), threads);
  formats::restore_indices(*holder, numbering_, dims_, threads);
  return holder->view();
}

void Tensor::slice_counts(int mode, i64 *counts) const {
  const auto m = static_cast<std::size_t>(mode);
  std::fill(counts, counts + dims_[m], i64{0});
  if (!sorted_.empty()) {
    Buffer<i64> stored(stored_dims()[m], "nonzeros of rows");
    std::fill(stored.begin(), stored.end(), i64{0});
    stored_counts(mode, stored.data());
    for (i64 number = 0; number < stored.size(); ++number)
      counts[numbering_.row(mode, number)] = stored[number];
    return;
  }
  if (dense_) {
    std::fill(counts, counts + dims_[m], facts_.nnz / dims_[m]);
    return;
  }
  std::optional<formats::Coo> holder;
  const auto view = coordinates(holder, 1);
  for (i64 k = 0; k < view.nnz; ++k)
    ++counts[view.indices[mode][k]];
}

/// Adds to counts, for each number of a row.
void Tensor::stored_counts(int mode, i64 *counts) const {
  const int group = groups_->group_of(mode);
  const Group &modes = groups_->modes(group);
  const auto copy = std::get<kernels::SortedView>(stored(group).view(OnHost::lists));
  const auto place = static_cast<std::size_t>(std::find(modes.begin(), modes.end(), mode) - modes.begin());
  const i64 *index_of_cell = modes.size() > 1 ? groups_->cells(group).columns[place] : nullptr;
  for (i64 row = 0; row < copy.rows; ++row) {
    const i64 cell = copy.row_index[row];
    counts[index_of_cell == nullptr ? cell : index_of_cell[cell]] += copy.row_begin[row + 1] - copy.row_begin[row];
  }
}

} // namespace td::plan
