// How tensors are made of a caller's entries or elements, or of a process's part of them, on the host or by devices.
#include <algorithm>

#include "comm/workers.hpp"
#include "core/clock.hpp"
#include "core/sentence.hpp"
#include "core/strides.hpp"
#include "tensor/joint_building.hpp"
#include "tensor/tensor.hpp"

namespace td::tensor {

/// What devices have begun to build: one, or all together.
struct Begun {
  std::unique_ptr<kernels::DeviceBuilding> one;
  std::unique_ptr<JointBuilding> all;

  kernels::Building *get() const noexcept { return all ? static_cast<kernels::Building *>(all.get()) : one.get(); }
};

namespace {

/// Where devices can make what the settings ask for: copies by single modes, or BLCO.
Begun begin_building(const Builders &builders, const formats::Given &given, const plan::TensorSettings &settings) {
  const EntriesView &entries = given.view();
  if (builders.empty() || !settings.numbers_rows() || settings.groups.ask == plan::Ask::named ||
      formats::linear_bits(entries.dims) > formats::max_linear_bits)
    return {};
  const auto known = formats::known_keys(entries, settings.empty_rows);
  const kernels::KeyMoves *keys = known ? &*known : nullptr;
  if (builders.size() > 1 && builders.front()->has_own_memory() && given.is_on_host())
    if (auto all = JointBuilding::begin(builders, entries, settings.sharding, keys))
      return {nullptr, std::move(all)};
  return {builders.front()->begin_building(entries, false, keys), nullptr};
}

/// Throws Status::host_memory for more entries than there is memory for in any format: before a caller's arrays, which
/// cannot be as long then, are read to where they end.
void require_entries(const EntriesView &entries, const plan::TensorSettings &settings) {
  MemoryNeed need;
  need.add("keys and values", static_cast<double>(entries.nnz) * static_cast<double>(8 + size_of(entries.value_type)));
  MemoryBudget(settings.memory_limit, 0).require("a tensor of " + count_text(entries.nnz, "entry", "entries"), need);
}

} // namespace

std::shared_ptr<const Tensor> Tensor::make_sparse(const EntriesView &entries, const plan::TensorSettings &settings,
                                                  int threads, std::string source, Target target,
                                                  kernels::Backend *builder) {
  return make_sparse(formats::Given(entries), settings, threads, std::move(source), target,
                     builder != nullptr ? Builders{builder} : Builders{});
}

std::shared_ptr<const Tensor> Tensor::make_sparse(const formats::Given &given, const plan::TensorSettings &settings,
                                                  int threads, std::string source, Target target,
                                                  const Builders &builders) {
  return build_sparse(given, false, settings, threads, std::move(source), target, builders);
}

std::shared_ptr<const Tensor> Tensor::make_distributed(Arrived part, const plan::TensorSettings &settings, int threads,
                                                       std::string source, Target target, kernels::Backend *builder) {
  plan::TensorSettings here = settings;
  here.empty_rows = formats::EmptyRows::keep; // those that are not held are left out already
  here.refuse_duplicates = false;             // these would be reported by numbers
  const auto x = build_sparse(formats::Given(part.entries.view()), true, here, threads, std::move(source), target,
                              builder != nullptr ? Builders{builder} : Builders{});
  x->settings_ = settings; // by which the whole tensor would be made
  x->share(std::move(part.distribution));
  if (settings.refuse_duplicates && x->facts_.duplicates > 0)
    throw_error(Status::index, "{} at the coordinates of others, and option 'duplicates' = \"error\"; expected none",
                count_text(x->facts_.duplicates, "entry is", "entries are"));
  return x;
}

std::shared_ptr<const Tensor> Tensor::make_distributed(ArrivedBox part, const plan::TensorSettings &settings,
                                                       int threads, std::string source, Target target) {
  const auto begin = Clock::now();
  const std::shared_ptr<Tensor> x =
      begin_dense(part.elements.dims, part.elements.values.type(), settings, threads, std::move(source), target);
  x->dense_ = std::move(part.elements);
  if (!part.empty)
    x->facts_ = facts_of(x->dense_->values, threads);
  x->share(std::move(part.distribution));
  x->list_forms();
  x->build_seconds_ = seconds_since(begin);
  return x;
}

void Tensor::share(std::shared_ptr<const Distribution> distribution) {
  distribution_ = std::move(distribution);
  std::vector<std::span<const i64>> rows;
  for (int m = 0; m < order(); ++m)
    rows.push_back(distribution_->rows(m));
  dims_.assign(distribution_->dims().begin(), distribution_->dims().end());
  numbering_ = formats::Numbering(rows);
  const i64 stored = facts_.nnz;
  facts_ = facts_of_all(facts_, distribution_->processes());
  elsewhere_ = facts_.nnz - stored;
}

std::shared_ptr<Tensor> Tensor::build_sparse(const formats::Given &given, bool checked,
                                             const plan::TensorSettings &settings, int threads, std::string source,
                                             Target target, const Builders &builders) {
  const auto begin = Clock::now();
  const EntriesView &entries = given.view();
  formats::check_shape(entries);
  const bool gpu = target == Target::gpu;
  Begun begun = gpu ? begin_building(builders, given, settings) : Begun{};
  kernels::Building *building = begun.get();
  if (building == nullptr)
    require_entries(entries, settings);
  if (!checked && building != nullptr)
    formats::check_entries(given, *building);
  else if (!checked)
    formats::check_entries(given.on_host(), threads);
  std::shared_ptr<Tensor> x(new Tensor(entries.dims, entries.value_type, settings, std::move(source), target));
  if (building != nullptr)
    x->numbering_ = formats::Numbering(entries, settings.empty_rows, *building, threads);
  else if (settings.numbers_rows())
    x->numbering_ = formats::Numbering(given.on_host(), settings.empty_rows, threads);
  const int gpus = gpu ? std::max(1, static_cast<int>(builders.size())) : 0;
  const plan::StorageRequest request{settings, gpus, threads, MemoryBudget(settings.memory_limit, 0),
                                     !builders.empty() ? builders.front()->chip() : kernels::Chip{}};
  x->storage_ = decide_storage({x->stored_dims(), entries.nnz, x->type_}, request);
  const bool coordinates = x->format() == plan::Format::coo;
  if (coordinates)
    x->numbering_ = formats::Numbering(entries.dims);
  require_storage(x->storage_, {x->stored_dims(), entries.nnz, x->type_}, request);
  x->groups_ = std::make_unique<const plan::Groups>(x->order());
  if (building != nullptr && !coordinates)
    x->store_built(begun, builders, given, request);
  else
    x->store(given.on_host(), request);
  x->list_forms();
  x->build_seconds_ = seconds_since(begin);
  return x;
}

void Tensor::store_built(const Begun &begun, const Builders &builders, const formats::Given &given,
                         const plan::StorageRequest &request) {
  kernels::Building &building = *begun.get();
  const auto packed = formats::build_packed(building, given, numbering_, settings_.refuse_duplicates);
  numbering_.forget_indices();
  facts_ = facts_of(building);
  facts_.duplicates = packed.duplicates;
  const auto keep = [&](auto &&built, bool last) {
    const void *memory = begun.all ? nullptr : builders.front()->memory();
    forms_.emplace_back(built.view, memory, std::move(built.arrays));
    adopt(begun, builders, given, last);
    return std::move(built.rest);
  };
  if (format() == plan::Format::blco) {
    blco_ = keep(formats::build_blco(packed), true);
    return;
  }
  decide_groups(storage_, {packed.dims, building.size(), type_}, request);
  for (const plan::Group &group : storage_.partition) {
    const int mode = group.front(); // alone: begin_building has seen to that
    sorted_.push_back(keep(
        formats::build_sorted(packed, mode, formats::tile_bits(storage_.tiles, packed.dims, mode, building.size())),
        mode == order() - 1));
  }
  groups_ = std::make_unique<const plan::Groups>(stored_dims(), settings_.groups_for(type_).ask, storage_.partition,
                                                 std::vector<formats::Coo>(static_cast<std::size_t>(order())));
}

// A copy that leaves too little room to make the next one does not stay.
void Tensor::adopt(const Begun &begun, const Builders &builders, const formats::Given &given, bool last) {
  const auto number = static_cast<int>(forms_.size()) - 1;
  const StoredForm &form = forms_.back();
  if (!begun.all) {
    kernels::Backend &builder = *builders.front();
    return resident_.adopt(builder, number, form, form.built(builder.memory()),
                           last ? 0 : builder.room_to_build(given.view(), false));
  }
  const JointBuilding::Held held = begun.all->take_held();
  if (held.parts.empty()) // of BLCO, which no worker has a part of yet
    form.view(OnHost::all);
  else
    sharded_.push_back(held.sharded);
  std::vector<const void *> columns;
  for (std::size_t worker = 0; worker < held.parts.size(); ++worker) {
    if (held.parts[worker] == nullptr)
      continue;
    const EntriesView given_there = JointBuilding::given_to(worker, builders.size(), given.view(), columns);
    resident_.adopt(*builders[worker], {number, {static_cast<int>(builders.size()), static_cast<int>(worker), false}},
                    StoredForm(form, held.sharded->selected[worker]), held.parts[worker],
                    last ? 0 : builders[worker]->room_to_build(given_there, true));
  }
}

std::shared_ptr<const Tensor> Tensor::make_dense(const DenseArrayView &array, const plan::TensorSettings &settings,
                                                 int threads, std::string source, Target target) {
  const auto begin = Clock::now();
  formats::check_dims(array.dims);
  const i64 elements = element_count(array.dims);
  const auto x = begin_dense(array.dims, array.value_type, settings, threads, std::move(source), target);
  require_storage(x->storage_, {array.dims, elements, array.value_type},
                  {settings, target == Target::gpu ? 1 : 0, threads, MemoryBudget(settings.memory_limit, 0)});
  x->dense_ = formats::build_dense(array, threads);
  x->facts_ = facts_of(x->dense_->values, threads);
  x->list_forms();
  x->build_seconds_ = seconds_since(begin);
  return x;
}

std::shared_ptr<Tensor> Tensor::begin_dense(std::span<const i64> dims, ValueType type,
                                            const plan::TensorSettings &settings, int threads, std::string source,
                                            Target target) {
  std::shared_ptr<Tensor> x(new Tensor(dims, type, settings, std::move(source), target));
  x->storage_ = plan::dense_storage(x->order(), type, {settings, target == Target::gpu ? 1 : 0, threads, {}});
  x->groups_ = std::make_unique<const plan::Groups>(dims, settings.groups_for(type));
  return x;
}

std::shared_ptr<const Tensor> Tensor::borrow_dense(const DenseArrayView &array, plan::TensorSettings settings,
                                                   int threads, Target target, kernels::Backend *device) {
  const auto begin = Clock::now();
  formats::Dense dense = formats::lend_dense(array);
  if (!dense.strides.empty()) {
    if (settings.groups.ask == plan::Ask::named)
      throw_error(Status::unsupported,
                  "option 'groups' = \"{}\": the modes of a borrowed array that does not lie first index fastest and "
                  "without gaps share no partial products; expected auto or none",
                  settings.groups.text);
    settings.groups = {plan::Ask::none, "none"};
  }
  const auto x = begin_dense(array.dims, array.value_type, settings, threads, "", target);
  x->dense_ = std::move(dense);
  if (device != nullptr)
    x->lent_ = device->lend(x->dense_->view(), "values");
  x->facts_ = facts_of_lent(x->dense_->view(), threads, device);
  if (device != nullptr)
    x->forms_.emplace_back(x->dense_view(), device->memory(), word_of(*device));
  else
    x->list_forms();
  x->build_seconds_ = seconds_since(begin);
  return x;
}

} // namespace td::tensor
