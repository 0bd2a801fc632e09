#include "tensor/whole.hpp"

#include <algorithm>
#include <numeric>

#include "core/sentence.hpp"
#include "core/strides.hpp"
#include "plan/layout.hpp"

namespace td::tensor {

namespace {

using Parts = std::span<const std::shared_ptr<const Tensor>>;

Entries gather_entries(Parts parts, Processes &processes, int threads) {
  const Tensor &first = *parts.front();
  Entries all;
  all.dims.assign(first.dims().begin(), first.dims().end());
  for (int m = 0; m < first.order(); ++m)
    all.indices.emplace_back(first.facts().nnz, "indices of a whole tensor");
  all.values = ValueBuffer(first.type(), first.facts().nnz, "values of a whole tensor");
  const i64 value_bytes = size_of(first.type());
  auto *const values = static_cast<std::byte *>(all.values.data());
  i64 here = 0;
  for (const auto &x : parts)
    here += x->stored_entries();
  const std::vector<i64> counts = processes.all_gather({&here, 1});
  i64 at = std::accumulate(counts.begin(), counts.begin() + processes.rank(), i64{0});
  for (const auto &x : parts) {
    std::optional<formats::Coo> holder;
    const kernels::CooView some = x->stored_coordinates(holder, threads);
    for (int m = 0; m < x->order(); ++m)
      std::transform(some.indices[m], some.indices[m] + some.nnz, all.indices[static_cast<std::size_t>(m)].data() + at,
                     [&](i64 number) { return x->numbering().row(m, number); });
    std::copy_n(static_cast<const std::byte *>(some.values), some.nnz * value_bytes, values + at * value_bytes);
    at += some.nnz;
  }
  i64 begin = 0;
  for (int process = 0; process < processes.size(); ++process) {
    const i64 count = counts[static_cast<std::size_t>(process)];
    if (count == 0)
      continue;
    for (auto &column : all.indices)
      processes.broadcast(column.data() + begin, count * i64{sizeof(i64)}, process);
    processes.broadcast(values + begin * value_bytes, count * value_bytes, process);
    begin += count;
  }
  return all;
}

/// The elements of a box, first index fastest, between the order of their numbers and that of the tensor.
template <class T> std::vector<T> elements_of_box(const Tensor &x, const Box &box) {
  if (elements_of(box) == 0)
    return {};
  const std::span<const i64> held = x.stored_dims();
  std::vector<std::vector<i64>> offset_of(held.size()); // of the rows of the box, among the elements here
  i64 stride = 1, count = 1;
  for (std::size_t m = 0; m < held.size(); ++m) {
    offset_of[m].resize(static_cast<std::size_t>(held[m]));
    const std::span<const i64> rows = x.numbering().rows(static_cast<int>(m));
    for (std::size_t number = 0; number < rows.size(); ++number)
      offset_of[m][static_cast<std::size_t>(rows[number] - box[m].begin)] = static_cast<i64>(number) * stride;
    stride *= held[m];
    count *= held[m];
  }
  std::vector<T> elements(static_cast<std::size_t>(count));
  const T *from = static_cast<const T *>(x.dense()->view().values);
  for (i64 k = 0; k < count; ++k) {
    i64 offset = 0, rest = k;
    for (std::size_t m = 0; m < held.size(); ++m) {
      offset += offset_of[m][static_cast<std::size_t>(rest % held[m])];
      rest /= held[m];
    }
    elements[static_cast<std::size_t>(k)] = from[offset];
  }
  return elements;
}

template <class T> void put_box(const std::vector<T> &elements, const Box &box, std::span<const i64> dims, T *to) {
  for (std::size_t k = 0; k < elements.size(); ++k) {
    i64 offset = 0, stride = 1;
    auto rest = static_cast<i64>(k);
    for (std::size_t m = 0; m < box.size(); ++m) {
      offset += (box[m].begin + rest % box[m].size()) * stride;
      stride *= dims[m];
      rest /= box[m].size();
    }
    to[offset] = elements[k];
  }
}

template <class T> void gather_elements(Parts parts, Processes &processes, T *to) {
  const Tensor &first = *parts.front();
  const Processes &workers = *first.processes();
  const std::vector<Box> boxes = cut_into_boxes(first.dims(), workers.size());
  for (int worker = 0; worker < workers.size(); ++worker) {
    const Box &box = boxes[static_cast<std::size_t>(worker)];
    const i64 count = elements_of(box);
    if (count == 0)
      continue;
    const int process = workers.process_of(worker);
    std::vector<T> elements = process == processes.rank()
                                  ? elements_of_box<T>(*parts[static_cast<std::size_t>(worker - workers.rank())], box)
                                  : std::vector<T>(static_cast<std::size_t>(count));
    processes.broadcast(elements.data(), count * i64{sizeof(T)}, process);
    put_box(elements, box, first.dims(), to);
  }
}

/// The process that is to have a fiber of a mode: an FNV-1a hash of its indices decides.
Buffer<std::int32_t> owners_of_fibers(const std::vector<Buffer<i64>> &indices, std::size_t mode, int processes) {
  Buffer<std::int32_t> to(indices.front().size(), "who gets fibers");
  for (i64 k = 0; k < to.size(); ++k) {
    u64 hash = 0xcbf29ce484222325;
    for (std::size_t m = 0; m < indices.size(); ++m)
      if (m != mode)
        hash = (hash ^ static_cast<u64>(indices[m][k])) * 0x100000001b3;
    to[k] = static_cast<std::int32_t>((hash ^ (hash >> 29)) % static_cast<u64>(processes));
  }
  return to;
}

formats::Coo fibers_of_entries(const Tensor &x, int mode, const MemoryBudget &budget, int threads) {
  Entries here;
  {
    std::optional<formats::Coo> holder;
    const kernels::CooView stored = x.stored_coordinates(holder, threads);
    here.dims.assign(x.dims().begin(), x.dims().end());
    for (int m = 0; m < x.order(); ++m) {
      i64 *const column = here.indices.emplace_back(stored.nnz, "entries by fibers").data();
      std::transform(stored.indices[m], stored.indices[m] + stored.nnz, column,
                     [&](i64 number) { return x.numbering().row(m, number); });
    }
    here.values = ValueBuffer(x.type(), stored.nnz, "entries by fibers");
    std::copy_n(static_cast<const std::byte *>(stored.values), stored.nnz * size_of(x.type()),
                static_cast<std::byte *>(here.values.data()));
  }
  Processes &processes = *x.processes();
  const Buffer<std::int32_t> to = owners_of_fibers(here.indices, static_cast<std::size_t>(mode), processes.size());
  LocalEntries fibers = bring(processes, here.view(), to, budget, threads);
  here = {};
  const formats::Coo canonical = formats::build_canonical(fibers.view(), false, threads).coo;
  return formats::build_fibers(canonical.view(), mode, threads);
}

} // namespace

Fibers fibers_of(const Tensor &x, int mode, int threads) {
  const MemoryBudget budget(x.settings().memory_limit, x.bytes());
  Fibers fibers;
  if (x.sparse()) {
    fibers.entries = fibers_of_entries(x, mode, budget, threads);
    fibers.empty = fibers.entries->view().nnz == 0;
    return fibers;
  }
  Processes &processes = *x.processes();
  const std::vector<Box> boxes = cut_into_boxes(x.dims(), processes.size());
  const Box &box = boxes[static_cast<std::size_t>(processes.rank())];
  std::vector<i64> dims;
  for (const Range &range : box)
    dims.push_back(range.size());
  dispatch(x.type(), [&](auto zero) {
    const auto elements = elements_of_box<decltype(zero)>(x, box);
    const DenseArrayView mine{dims, {}, x.type(), elements.data()};
    fibers.elements = bring(processes, mine, boxes, cut_into_boxes(x.dims(), processes.size(), mode), budget, threads);
  });
  fibers.empty = fibers.elements.values.size() == 0;
  return fibers;
}

plan::TensorSettings settings_of_whole(const Tensor &x) {
  plan::TensorSettings settings = x.settings();
  settings.groups = {plan::Ask::none, "none"};
  return settings;
}

std::shared_ptr<const Tensor> whole_of(Parts parts, Processes &processes, i64 memory_limit, kernels::Backend &backend,
                                       int threads) {
  const Tensor &x = *parts.front();
  i64 held = 0;
  for (const auto &part : parts)
    held += part->bytes();
  MemoryNeed need;
  need.add(x.sparse() ? "entries of all processes" : "elements of all processes",
           plan::whole_bytes(x.facts().nnz, x.order(), x.type(), x.sparse()));
  MemoryBudget(memory_limit, held)
      .require("a tensor of which each process holds all, as option 'deterministic' = 1 has it", need);
  plan::TensorSettings settings = settings_of_whole(x);
  settings.memory_limit = memory_limit;
  if (x.sparse())
    return Tensor::make_sparse(gather_entries(parts, processes, threads).view(), settings, threads, x.source(),
                               x.target(), &backend);
  ValueBuffer values(x.type(), x.facts().nnz, "the values of a whole tensor");
  dispatch(x.type(), [&](auto zero) { gather_elements(parts, processes, values.as<decltype(zero)>()); });
  return Tensor::make_dense({x.dims(), {}, x.type(), values.data()}, settings, threads, x.source(), x.target());
}

} // namespace td::tensor
