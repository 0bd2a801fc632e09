// StoredForm is what the host has of a stored form: all of it, or at first only its small lists, where it was built in
// a device's memory; or of a part of it, whose entries stay where they are in the form.
#pragma once

#include <concepts>
#include <memory>
#include <string>

#include "kernels/building.hpp"
#include "tensor/arrays.hpp"
#include "tensor/selection.hpp"

namespace td::tensor {

/// What of a form somebody needs in host memory.
enum class OnHost {
  sizes, // nothing but what is there, and a part's lists of tiles and blocks
  lists, // of rows, tiles and blocks
  all,
};

/// Arrays that a device has come to the host when they are first needed there, once for all threads, and stay. Copies
/// share them.
class StoredForm {
public:
  /// The form is in host memory.
  template <std::convertible_to<kernels::TensorView> View>
  StoredForm(const View &host) : state_(in_host_memory(host)) {} // NOLINT: a view is a form
  /// The first arrays of the view are `built`, in that memory().
  StoredForm(const kernels::TensorView &sizes, const void *memory, std::shared_ptr<const kernels::DeviceArrays> built);
  /// The form is a caller's array in that memory(), and is worked on there alone.
  StoredForm(const kernels::DenseView &lent, const void *memory, std::string device);
  /// Some of a form. Its own lists are made when they are first needed.
  StoredForm(const StoredForm &whole, Selection some);

  /// Pointers are null of what is not in host memory; those to the entries of a part are the form's. Throws
  /// Status::host_memory if there is no room for what is needed; it may be asked for again.
  kernels::TensorView view(OnHost needed) const;

  /// The form that this is a part of, or itself; and what of it, or null.
  const StoredForm &whole() const noexcept;
  const Selection *selection() const noexcept;

  /// What was built in this memory(), as long as not all of it is on the host.
  std::shared_ptr<const kernels::DeviceArrays> built(const void *memory) const;

  /// The memory() that a form is lent in; null: it is in the host's, or was built.
  const void *lent_in() const noexcept;
  /// The form where it lies. Throws Status::unsupported for another memory().
  kernels::TensorView lent(const void *memory) const;

  /// Counts what was built on a device, wherever it is by now.
  i64 built_bytes() const noexcept;

private:
  struct State;
  static std::shared_ptr<State> in_host_memory(const kernels::TensorView &host);
  std::shared_ptr<State> state_;
};

} // namespace td::tensor
