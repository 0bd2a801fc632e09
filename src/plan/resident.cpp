#include "plan/resident.hpp"

namespace td::plan {

namespace {

constexpr const char *what = "a copy of the tensor on the GPU";

/// Calls f(array, count) for each array of a view, in one order; f may set the pointer.
template <class View, class F> void for_each_array(View &x, F &&f) {
  const auto values = [&](auto &view, i64 count) {
    const char *bytes = static_cast<const char *>(view.values);
    f(bytes, count * size_of(view.type));
    view.values = bytes;
  };
  if (auto *blco = std::get_if<kernels::BlcoView>(&x)) {
    f(blco->keys, blco->nnz);
    values(*blco, blco->nnz);
    f(blco->block_begin, blco->blocks + 1);
    f(blco->block_base, blco->blocks * std::ssize(blco->dims));
  } else if (auto *sorted = std::get_if<kernels::SortedView>(&x)) {
    const char *keys = static_cast<const char *>(sorted->keys);
    f(keys, sorted->nnz * sorted->key_bytes);
    sorted->keys = keys;
    values(*sorted, sorted->nnz);
    f(sorted->row_index, sorted->rows);
    f(sorted->row_begin, sorted->rows + 1);
    f(sorted->tile_begin, sorted->tiles + 1);
    f(sorted->tile_base, sorted->tiles * std::ssize(sorted->dims));
    f(sorted->tile_light, sorted->tiles > 1 ? sorted->tiles : 0);
  } else if (auto *dense = std::get_if<kernels::DenseView>(&x)) {
    values(*dense, kernels::entries_of(x));
  } else {
    auto &coo = std::get<kernels::CooView>(x);
    values(coo, coo.nnz);
  }
}

} // namespace

template <class T> const T *DeviceCopy::keep(kernels::Backend &backend, const T *host, i64 count) {
  return static_cast<const T *>(
      arrays_.emplace_back(backend.keep(host, count * static_cast<i64>(sizeof(T)), what)).get());
}

DeviceCopy::DeviceCopy(kernels::Backend &backend, const kernels::TensorView &host) {
  kernels::TensorView x = host;
  for_each_array(x, [&](auto &array, i64 count) { places_.push_back(keep(backend, array, count)); });
  if (const auto *coo = std::get_if<kernels::CooView>(&host))
    for (std::size_t m = 0; m < coo->dims.size(); ++m)
      columns_.push_back(keep(backend, coo->indices[m], coo->nnz));
}

kernels::TensorView DeviceCopy::view(const kernels::TensorView &host) const {
  kernels::TensorView x = host;
  std::size_t next = 0;
  for_each_array(x, [&]<class T>(const T *&array, i64) { array = static_cast<const T *>(places_[next++]); });
  if (auto *coo = std::get_if<kernels::CooView>(&x))
    coo->indices = columns_.data();
  return x;
}

kernels::TensorView Resident::on(kernels::Backend &backend, int form, const kernels::TensorView &host) {
  if (backend.memory() == nullptr)
    return host;
  const std::lock_guard lock(mutex_);
  auto &copy = copies_[{backend.memory(), form}];
  if (!copy)
    copy = std::make_unique<const DeviceCopy>(backend, host);
  return copy->view(host);
}

} // namespace td::plan
