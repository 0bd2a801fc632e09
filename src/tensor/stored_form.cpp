#include "tensor/stored_form.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

#include "core/buffer.hpp"
#include "core/error.hpp"

namespace td::tensor {

struct StoredForm::State {
  explicit State(const kernels::TensorView &given) : form(given) {}

  std::mutex mutex;
  FormView form;
  const void *memory = nullptr;
  std::shared_ptr<const kernels::DeviceArrays> built; // null: all is on the host
  std::vector<bool> away;                             // of what was built
  std::vector<Buffer<std::byte>> arrays;              // that have come
  i64 bytes = 0;
  std::string device; // whose memory the form is lent in; empty: none

  // A part has these:
  struct Selected {
    StoredForm whole;
    Selection some;
    SelectedLists lists;
  };
  std::optional<Selected> selected;

  void select(OnHost needed) {
    const kernels::TensorView whole = selected->whole.view(needed);
    fill_lists(whole, selected->some, needed != OnHost::sizes, selected->lists);
    form = FormView(view_of(whole, selected->some, selected->lists));
  }

  void bring(bool entries) {
    std::vector<FormArray> all = form.arrays();
    all.resize(away.size());
    std::vector<Buffer<std::byte>> come(all.size());
    std::vector<void *> places(all.size(), nullptr);
    bool any = false;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (!away[k] || (all[k].entries && !entries))
        continue;
      come[k] = Buffer<std::byte>(all[k].bytes(), "a copy on the host of what was built on a GPU");
      places[k] = come[k].data();
      any = true;
    }
    if (!any)
      return;
    arrays.reserve(arrays.size() + all.size());
    built->download(places);

    std::size_t next = 0;
    form.replace([&](const FormArray &array) {
      const std::size_t k = next++;
      return k < places.size() && places[k] != nullptr ? places[k] : array.data;
    });
    for (std::size_t k = 0; k < all.size(); ++k)
      if (places[k] != nullptr) {
        arrays.push_back(std::move(come[k]));
        away[k] = false;
      }
    if (std::find(away.begin(), away.end(), true) == away.end())
      built = nullptr;
  }
};

std::shared_ptr<StoredForm::State> StoredForm::in_host_memory(const kernels::TensorView &host) {
  return std::make_shared<State>(host);
}

StoredForm::StoredForm(const kernels::TensorView &sizes, const void *memory,
                       std::shared_ptr<const kernels::DeviceArrays> built)
    : state_(std::make_shared<State>(sizes)) {
  for (const kernels::DeviceArrays::Array &array : built->arrays())
    state_->bytes += array.bytes;
  state_->away.assign(built->arrays().size(), true);
  state_->memory = memory;
  state_->built = std::move(built);
}

StoredForm::StoredForm(const kernels::DenseView &lent, const void *memory, std::string device)
    : state_(std::make_shared<State>(lent)) {
  state_->memory = memory;
  state_->device = std::move(device);
}

const void *StoredForm::lent_in() const noexcept { return state_->device.empty() ? nullptr : state_->memory; }

kernels::TensorView StoredForm::lent(const void *memory) const {
  if (memory != state_->memory)
    throw_error(Status::unsupported,
                "the tensor's elements are borrowed in the memory of {}: expected a context of that GPU alone",
                state_->device);
  return state_->form.view();
}

StoredForm::StoredForm(const StoredForm &whole, Selection some)
    : state_(std::make_shared<State>(whole.view(OnHost::sizes))) {
  state_->selected.emplace(State::Selected{whole, std::move(some), {}});
}

const StoredForm &StoredForm::whole() const noexcept { return state_->selected ? state_->selected->whole : *this; }

const Selection *StoredForm::selection() const noexcept { return state_->selected ? &state_->selected->some : nullptr; }

kernels::TensorView StoredForm::view(OnHost needed) const {
  const std::lock_guard lock(state_->mutex);
  if (needed == OnHost::all && !state_->device.empty())
    lent(nullptr); // throws
  if (state_->selected)
    state_->select(needed);
  else if (needed != OnHost::sizes && state_->built != nullptr)
    state_->bring(needed == OnHost::all);
  return state_->form.view();
}

std::shared_ptr<const kernels::DeviceArrays> StoredForm::built(const void *memory) const {
  const std::lock_guard lock(state_->mutex);
  return memory == state_->memory ? state_->built : nullptr;
}

i64 StoredForm::built_bytes() const noexcept { return state_->bytes; }

} // namespace td::tensor
