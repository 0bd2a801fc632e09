#include <algorithm>

#include "core/sentence.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace td;
using namespace td::c_api;

namespace {

/// A handle's object with its dims and labels, which a tensor and a ktensor have alike.
struct Named {
  std::shared_ptr<void> owner;
  std::span<const i64> dims;
  Labels *labels;

  Labels &of(std::int32_t mode) const {
    require_mode(mode, static_cast<int>(dims.size()));
    return *labels;
  }
  i64 dim(std::int32_t mode) const { return dims[static_cast<std::size_t>(mode)]; }
  /// Before something is set: where nothing was, there is no place for it either.
  Labels &changed(std::int32_t mode) const {
    of(mode);
    if (labels->empty())
      *labels = Labels(static_cast<int>(dims.size()));
    return *labels;
  }
};

Named named_by(const td_tensor *tensor) {
  const auto x = object_of<td_tensor>(tensor, "tensor");
  return {x, x->x->dims(), &x->labels};
}

Named named_by(const td_ktensor *ktensor) {
  const auto k = object_of<td_ktensor>(ktensor, "ktensor");
  return {k, k->dims(), &k->labels()};
}

template <class Handle> td_status set_mode_name(Handle *handle, std::int32_t mode, const char *name) {
  return guard([&] {
    const Named object = named_by(handle);
    const std::string_view text = name == nullptr ? "" : name;
    object.of(mode);
    if (!is_utf8(text))
      throw_error(Status::argument, "name: '{}' is not UTF-8", escaped(text));
    object.changed(mode).set_name(mode, text);
  });
}

template <class Handle>
td_status get_mode_name(const Handle *handle, std::int32_t mode, char *buf, std::int64_t cap, std::int64_t *needed) {
  return guard([&] {
    const Named object = named_by(handle);
    copy_text(object.of(mode).name(mode), buf, cap, needed);
  });
}

template <class Handle>
td_status set_labels(Handle *handle, std::int32_t mode, const char *labels, std::int64_t bytes) {
  return guard([&] {
    const Named object = named_by(handle);
    object.of(mode);
    if (bytes < 0 || (bytes > 0 && labels == nullptr))
      throw_error(Status::argument, "labels, bytes = {}: expected as many bytes, and 0 to take labels away", bytes);
    std::shared_ptr<const LabelList> list;
    if (bytes > 0) {
      const std::string_view text(labels, static_cast<std::size_t>(bytes));
      if (const std::string problem = labels_problem(text, object.dim(mode)); !problem.empty())
        throw_error(Status::argument, "labels of mode {}: {}", mode, problem);
      list = LabelList::copy_of(text, object.dim(mode));
    }
    object.changed(mode).set_list(mode, std::move(list));
  });
}

template <class Handle>
td_status get_label(const Handle *handle, std::int32_t mode, std::int64_t index, char *buf, std::int64_t cap,
                    std::int64_t *needed) {
  return guard([&] {
    const Named object = named_by(handle);
    const LabelList *list = object.of(mode).list(mode);
    if (index < 0 || index >= object.dim(mode))
      throw_error(Status::index, "index = {}: expected 0 .. {}", index, object.dim(mode) - 1);
    copy_text(list == nullptr ? std::string_view() : (*list)[index], buf, cap, needed);
  });
}

template <class Handle>
td_status get_labels(const Handle *handle, std::int32_t mode, char *buf, std::int64_t cap, std::int64_t *needed) {
  return guard([&] {
    const Named object = named_by(handle);
    const LabelList *list = object.of(mode).list(mode);
    if (cap < 0 || (buf == nullptr && cap > 0))
      throw_error(Status::argument, "buf, cap = {}: expected room for cap >= 0 bytes", cap);
    const std::string_view text = list == nullptr ? std::string_view() : list->text();
    std::copy_n(text.begin(), std::min(static_cast<std::size_t>(cap), text.size()), buf);
    if (needed != nullptr)
      *needed = static_cast<std::int64_t>(text.size());
  });
}

} // namespace

extern "C" {

td_status td_tensor_set_mode_name(td_tensor *tensor, int32_t mode, const char *name) {
  return set_mode_name(tensor, mode, name);
}
td_status td_ktensor_set_mode_name(td_ktensor *ktensor, int32_t mode, const char *name) {
  return set_mode_name(ktensor, mode, name);
}

td_status td_tensor_get_mode_name(const td_tensor *tensor, int32_t mode, char *buf, int64_t cap, int64_t *needed) {
  return get_mode_name(tensor, mode, buf, cap, needed);
}
td_status td_ktensor_get_mode_name(const td_ktensor *ktensor, int32_t mode, char *buf, int64_t cap, int64_t *needed) {
  return get_mode_name(ktensor, mode, buf, cap, needed);
}

td_status td_tensor_set_labels(td_tensor *tensor, int32_t mode, const char *labels, int64_t bytes) {
  return set_labels(tensor, mode, labels, bytes);
}
td_status td_ktensor_set_labels(td_ktensor *ktensor, int32_t mode, const char *labels, int64_t bytes) {
  return set_labels(ktensor, mode, labels, bytes);
}

td_status td_tensor_get_label(const td_tensor *tensor, int32_t mode, int64_t index, char *buf, int64_t cap,
                              int64_t *needed) {
  return get_label(tensor, mode, index, buf, cap, needed);
}
td_status td_ktensor_get_label(const td_ktensor *ktensor, int32_t mode, int64_t index, char *buf, int64_t cap,
                               int64_t *needed) {
  return get_label(ktensor, mode, index, buf, cap, needed);
}

td_status td_tensor_get_labels(const td_tensor *tensor, int32_t mode, char *buf, int64_t cap, int64_t *needed) {
  return get_labels(tensor, mode, buf, cap, needed);
}
td_status td_ktensor_get_labels(const td_ktensor *ktensor, int32_t mode, char *buf, int64_t cap, int64_t *needed) {
  return get_labels(ktensor, mode, buf, cap, needed);
}

td_status td_ktensor_get_leading(const td_ktensor *ktensor, int32_t mode, int64_t component, int64_t n,
                                 int64_t *indices, double *values, int64_t *found) {
  return guard([&] {
    const auto k = object_of(ktensor, "ktensor");
    require_mode(mode, k->order());
    if (component < 0 || component >= k->rank())
      throw_error(Status::shape, "component = {}: expected 0 .. {}", component, k->rank() - 1);
    if (n < 0)
      throw_error(Status::shape, "n = {}: expected n >= 0", n);
    const std::vector<Leader> leading = leaders(*k, mode, component, n);
    for (std::size_t place = 0; place < leading.size(); ++place) {
      if (indices != nullptr)
        indices[place] = leading[place].index;
      if (values != nullptr)
        values[place] = leading[place].value;
    }
    if (found != nullptr)
      *found = static_cast<int64_t>(leading.size());
  });
}

} // extern "C"
