// Stored forms in the memory that kernels work on: built there, or uploaded when first asked for, and kept as far as
// there is room. What there is no room for stays on the host and passes through buffers, beside the work on what is
// there already.
#pragma once

#include "tensor/placement.hpp"

namespace td::tensor {

/// One worker of those that a tensor is partitioned between. What it has depends on whether rows may be split, too,
/// which those that sum in order do not allow.
struct PartOf {
  int workers = 1;
  int worker = 0;
  bool in_order = false;
  auto operator<=>(const PartOf &) const = default;
};

/// Tells the forms of a tensor apart, and their parts.
struct FormKey {
  FormKey(int form) : number(form) {} // NOLINT: the number of a whole form is its key
  FormKey(int form, const PartOf &worker) : number(form), part(worker) {}
  auto operator<=>(const FormKey &) const = default;
  int number;
  PartOf part;
};

/// The copies of one tensor, for any number of contexts at the same time. They go with the tensor.
class Resident {
public:
  /// How large parts are, for tests; 0: as suits the tensor and the room.
  explicit Resident(i64 part_entries = 0);
  Resident(const Resident &) = delete;
  Resident &operator=(const Resident &) = delete;

  /// A form for this backend's kernels: the host's own where they work in host memory; else what is resident of it, for
  /// which room is looked for now. `all` is what the tensor's forms, or their parts for this worker, take together:
  /// where that is too much, each gets the same fraction of the room, but for what was built there and is kept whole. A
  /// part takes the place of other parts of its form, and of the whole form. Throws Status::device_memory if not even
  /// the lists of rows or blocks fit.
  /// `held` says which entries are kept of a form that workers gather; lists are kept of all.
  Placement on(kernels::Backend &backend, const FormKey &key, const StoredForm &stored, const FormBytes &all,
               const Range *held = nullptr);
  Placement on(kernels::Backend &backend, const FormKey &key, const StoredForm &stored) {
    return on(backend, key, stored, bytes_of(stored.view(OnHost::sizes)));
  }

  /// Keeps a form, or a part, of which the first arrays were just built in the backend's memory, if there is room for
  /// the rest of it and `spare` bytes besides; else all of the form comes to the host at once. What is asked back later
  /// comes to the host first.
  void adopt(kernels::Backend &backend, const FormKey &key, const StoredForm &stored,
             const std::shared_ptr<const kernels::DeviceArrays> &built, i64 spare);

  /// Says how many bytes of entries are resident in a memory().
  i64 bytes(const void *memory) const;

private:
  class State;
  std::shared_ptr<State> state_;
};

} // namespace td::tensor
