#include "tensor/whole.hpp"

#include <algorithm>

#include "core/sentence.hpp"
#include "core/strides.hpp"

namespace td::tensor {

namespace {

Entries gather_entries(const Tensor &x, int threads) {
  Processes &processes = *x.processes();
  std::optional<formats::Coo> holder;
  const kernels::CooView here = x.stored_coordinates(holder, threads);
  Entries all;
  all.dims.assign(x.dims().begin(), x.dims().end());
  for (int m = 0; m < x.order(); ++m)
    all.indices.emplace_back(x.facts().nnz, "indices of a whole tensor");
  all.values = ValueBuffer(x.type(), x.facts().nnz, "values of a whole tensor");
  const i64 value_bytes = size_of(x.type());
  i64 begin = 0;
  const std::vector<i64> counts = processes.all_gather({&here.nnz, 1});
  for (int process = 0; process < processes.size(); ++process) {
    const i64 count = counts[static_cast<std::size_t>(process)];
    if (count == 0)
      continue;
    std::byte *const values = static_cast<std::byte *>(all.values.data()) + begin * value_bytes;
    if (process == processes.rank())
      std::copy_n(static_cast<const std::byte *>(here.values), count * value_bytes, values);
    for (int m = 0; m < x.order(); ++m) {
      i64 *const column = all.indices[static_cast<std::size_t>(m)].data() + begin;
      if (process == processes.rank())
        std::transform(here.indices[m], here.indices[m] + count, column,
                       [&](i64 number) { return x.numbering().row(m, number); });
      processes.broadcast(column, count * i64{sizeof(i64)}, process);
    }
    processes.broadcast(values, count * value_bytes, process);
    begin += count;
  }
  return all;
}

/// The elements of a box, first index fastest, between the order of their numbers and that of the tensor.
template <class T> std::vector<T> elements_of_box(const Tensor &x, const Box &box) {
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

template <class T> void gather_elements(const Tensor &x, T *to) {
  Processes &processes = *x.processes();
  const std::vector<Box> boxes = cut_into_boxes(x.dims(), processes.size());
  for (int process = 0; process < processes.size(); ++process) {
    const Box &box = boxes[static_cast<std::size_t>(process)];
    i64 count = 1;
    for (const Range &range : box)
      count *= range.size();
    if (count == 0)
      continue;
    std::vector<T> elements =
        process == processes.rank() ? elements_of_box<T>(x, box) : std::vector<T>(static_cast<std::size_t>(count));
    processes.broadcast(elements.data(), count * i64{sizeof(T)}, process);
    put_box(elements, box, x.dims(), to);
  }
}

} // namespace

plan::TensorSettings settings_of_whole(const Tensor &x) {
  plan::TensorSettings settings = x.settings();
  settings.groups = {plan::Ask::none, "none"};
  return settings;
}

double gathered_bytes(const Tensor &x) {
  const double of_entry = static_cast<double>(size_of(x.type())) + (x.sparse() ? 8.0 * x.order() : 0);
  return static_cast<double>(x.facts().nnz) * of_entry;
}

std::shared_ptr<const Tensor> whole_of(const Tensor &x, int threads) {
  MemoryNeed need;
  need.add(x.sparse() ? "entries of all processes" : "elements of all processes", gathered_bytes(x));
  MemoryBudget(x.settings().memory_limit, x.bytes())
      .require("a tensor of which each process holds all, as option 'deterministic' = 1 has it", need);
  const plan::TensorSettings settings = settings_of_whole(x);
  if (x.sparse())
    return Tensor::make_sparse(gather_entries(x, threads).view(), settings, threads, x.source());
  ValueBuffer values(x.type(), x.facts().nnz, "the values of a whole tensor");
  dispatch(x.type(), [&](auto zero) { gather_elements(x, values.as<decltype(zero)>()); });
  return Tensor::make_dense({x.dims(), {}, x.type(), values.data()}, settings, threads, x.source());
}

} // namespace td::tensor
