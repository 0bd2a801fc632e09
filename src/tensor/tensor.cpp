#include "tensor/tensor.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "core/sentence.hpp"
#include "formats/merged.hpp"
#include "tensor/sharding.hpp"

namespace td::tensor {

void Tensor::store(const EntriesView &entries, const plan::StorageRequest &request) {
  const int threads = request.threads;
  const bool refuse_duplicates = settings_.refuse_duplicates;
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
  if (format() == plan::Format::coo)
    coo_ = formats::unpack(packed, threads);
  else if (format() == plan::Format::blco)
    blco_ = formats::build_blco(std::move(packed), threads);
  else
    sort(packed, request);
}

void Tensor::list_forms() {
  if (!forms_.empty())
    return;
  for (const formats::Sorted &copy : sorted_)
    forms_.emplace_back(copy.view());
  if (dense_)
    forms_.emplace_back(dense_view());
  if (coo_)
    forms_.emplace_back(coo_->view());
  if (blco_)
    forms_.emplace_back(blco_->view());
}

kernels::DenseView Tensor::dense_view() const {
  kernels::DenseView view = dense_->view();
  view.largest = std::max(std::abs(facts_.min), std::abs(facts_.max));
  return view;
}

void Tensor::sort(formats::Packed &packed, const plan::StorageRequest &request) {
  const int threads = request.threads;
  decide_groups(storage_, {packed.dims, packed.nnz(), type_, formats::combinations_of(packed, threads)}, request);
  std::vector<formats::Coo> cells(storage_.partition.size());
  for (std::size_t g = 0; g < cells.size(); ++g) {
    const plan::Group &modes = storage_.partition[g];
    if (modes.size() == 1) {
      const int mode = modes.front();
      const auto bits = formats::tile_bits(storage_.tiles, packed.dims, mode, packed.nnz());
      sorted_.push_back(formats::build_sorted(packed, mode, bits, threads));
      continue;
    }
    formats::SortedCells merged = formats::build_sorted_cells(packed, modes, storage_.tiles, threads);
    sorted_.push_back(std::move(merged.sorted));
    cells[g] = std::move(merged.cells);
  }
  groups_ = std::make_unique<const plan::Groups>(stored_dims(), settings_.groups_for(type_).ask, storage_.partition,
                                                 std::move(cells));
}

DenseArrayView Tensor::elements(std::optional<formats::Dense> &holder) const {
  if (lent_ == nullptr)
    return {dense_->dims, dense_->strides, type_, dense_->view().values};
  MemoryNeed need;
  need.add("a copy on the host", static_cast<double>(facts_.nnz) * static_cast<double>(size_of(type_)));
  MemoryBudget(settings_.memory_limit, 0).require("the elements of a tensor that is borrowed on a GPU", need);
  holder.emplace();
  holder->dims = dims_;
  holder->values = ValueBuffer(type_, facts_.nnz, "a copy of a tensor that is borrowed on a GPU");
  holder->strides = kernels::copied_strides(dense_->view());
  void *const to[] = {holder->values.data()};
  lent_->download(to);
  return {holder->dims, holder->strides, type_, holder->values.data()};
}

void Tensor::require_reach(const kernels::Backend &backend) const {
  if (borrowed_in() != nullptr)
    forms_.front().lent(backend.memory());
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
  return total + numbering_.bytes() + (distribution_ ? distribution_->bytes() : 0);
}

std::string Tensor::describe() const {
  const std::string shape = fmt::format("{}", fmt::join(dims_, " x "));
  const std::string size = size_text(bytes());
  const std::string here = distribution_ ? fmt::format(" of which {} here", stored_entries()) : "";
  if (dense_)
    return fmt::format("dense {}, {}{}, {}, {}", shape, count_text(facts_.nnz, "element", "elements"), here,
                       name_of(type_),
                       !borrowed()        ? size
                       : lent_ == nullptr ? "borrowed from the caller"
                                          : "borrowed from the caller on a GPU");
  std::string parts;
  if (!sorted_.empty())
    parts = count_text(static_cast<i64>(sorted_.size()), "copy", "copies") + ", ";
  else if (blco_)
    parts = count_text(blco_->block_begin.size() - 1, "block", "blocks") + ", ";
  return fmt::format("sparse {}, {}{}, {}, {} ({}{})", shape, count_text(facts_.nnz, "entry", "entries"), here,
                     name_of(type_), name_of(format()), parts, size);
}

const StoredForm &Tensor::form(int number) const {
  return forms_[sorted_.empty() ? 0 : static_cast<std::size_t>(number)];
}

Placement Tensor::placed(int number, kernels::Backend &backend) const {
  FormBytes all;
  for (const StoredForm &form : forms_) {
    const FormBytes bytes = bytes_of(form.view(OnHost::sizes));
    all.entries += bytes.entries;
    all.lists += bytes.lists;
  }
  return resident_.on(backend, sorted_.empty() ? 0 : number, form(number), all);
}

int Tensor::form_of(int mode) const {
  const int group = groups_->group_of(mode);
  if (!sorted_.empty() && groups_->modes(group).size() > 1)
    throw_error(Status::internal, "no copy is sorted by mode {} alone", mode);
  return group;
}

kernels::TensorView Tensor::view(int mode, OnHost needed) const { return form(form_of(mode)).view(needed); }

Placement Tensor::view(int mode, kernels::Backend &backend) const { return placed(form_of(mode), backend); }

Placement Tensor::whole_view(kernels::Backend &backend) const { return placed(whole_form(), backend); }

int Tensor::whole_form() const {
  int group = 0;
  while (!sorted_.empty() && groups_->modes(group).size() > 1)
    ++group;
  return group;
}

kernels::TensorView Tensor::merged_view(int group, OnHost needed) const {
  kernels::TensorView view = form(group).view(needed);
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
  if (distribution_)
    throw_error(Status::unsupported, "coordinates of a tensor that {}, expected one that is held whole",
                count_text(distribution_->processes().processes(), "process shares", "processes share"));
  const kernels::CooView stored = stored_coordinates(holder, threads);
  if (!holder)
    return stored;
  formats::restore_indices(*holder, numbering_, dims_, threads);
  return holder->view();
}

kernels::CooView Tensor::stored_coordinates(std::optional<formats::Coo> &holder, int threads) const {
  if (dense_)
    throw_error(Status::unsupported, "coordinates of a dense tensor, expected a sparse one");
  if (coo_)
    return coo_->view();
  MemoryNeed need;
  need.add("coordinates", decoded_bytes(format(), {stored_dims(), stored_entries(), type_}, threads).peak);
  MemoryBudget(settings_.memory_limit, bytes())
      .require(fmt::format("decoding a tensor of format {}", name_of(format())), need);
  const kernels::TensorView view = form(whole_form()).view(OnHost::all);
  if (blco_)
    holder = formats::decode(std::get<kernels::BlcoView>(view), threads);
  else
    holder = formats::decode(std::get<kernels::SortedView>(view), threads);
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

const Sharded *Tensor::sharded(int mode, int workers) const {
  const auto form = static_cast<std::size_t>(groups_->group_of(mode));
  if (form >= sharded_.size() || std::ssize(sharded_[form]->loads) != workers)
    return nullptr;
  return sharded_[form].get();
}

/// Adds to counts, for each number of a row.
void Tensor::stored_counts(int mode, i64 *counts) const {
  const int group = groups_->group_of(mode);
  const plan::Group &modes = groups_->modes(group);
  const auto copy = std::get<kernels::SortedView>(form(group).view(OnHost::lists));
  const auto place = static_cast<std::size_t>(std::find(modes.begin(), modes.end(), mode) - modes.begin());
  const i64 *index_of_cell = modes.size() > 1 ? groups_->cells(group).columns[place] : nullptr;
  for (i64 row = 0; row < copy.rows; ++row) {
    const i64 cell = copy.row_index[row];
    counts[index_of_cell == nullptr ? cell : index_of_cell[cell]] += copy.row_begin[row + 1] - copy.row_begin[row];
  }
}

} // namespace td::tensor
