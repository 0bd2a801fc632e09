// Stored forms in the memory that kernels work on: uploaded when first asked for, and kept.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/kernels.hpp"

namespace td::plan {

/// The arrays of one view in a backend's memory.
class DeviceCopy {
public:
  DeviceCopy(kernels::Backend &backend, const kernels::TensorView &host);

  /// What `host` shows, with the arrays of this copy. Dims and other lists that stay on the host are those of `host`,
  /// which must live as long as the view.
  kernels::TensorView view(const kernels::TensorView &host) const;

private:
  template <class T> const T *keep(kernels::Backend &backend, const T *host, i64 count);

  std::vector<std::shared_ptr<const void>> arrays_;
  std::vector<const void *> places_; // in the order in which a view lists its arrays
  std::vector<const i64 *> columns_; // of coordinates
};

/// The copies of one tensor, for any number of contexts at the same time. They go with the tensor.
class Resident {
public:
  /// The view for this backend's kernels: the host's own where they work in host memory, else that of a copy, which is
  /// made at the first call. `form` tells the tensor's forms apart. Throws Status::device_memory.
  kernels::TensorView on(kernels::Backend &backend, int form, const kernels::TensorView &host);

private:
  std::mutex mutex_;
  std::map<std::pair<const void *, int>, std::unique_ptr<const DeviceCopy>> copies_;
};

} // namespace td::plan
