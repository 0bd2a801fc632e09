// A caller's entries, in host memory or in a device's.
#pragma once

#include <vector>

#include "core/buffer.hpp"
#include "core/views.hpp"
#include "kernels/backend.hpp"

namespace td::formats {

class Given {
public:
  /// The arrays are in host memory.
  explicit Given(const EntriesView &entries) : view_(entries) {}
  /// The arrays are in the memory() of a backend.
  Given(const EntriesView &entries, kernels::Backend &device) : view_(entries), device_(&device) {}
  Given(const Given &) = delete;
  Given &operator=(const Given &) = delete;

  /// The arrays, wherever they are.
  const EntriesView &view() const noexcept { return view_; }
  /// Whether they are in host memory.
  bool is_on_host() const noexcept { return device_ == nullptr; }
  /// The arrays in host memory: they are copied there when first asked for, if they are not.
  const EntriesView &on_host() const;

private:
  EntriesView view_;
  kernels::Backend *device_ = nullptr; // null: on the host
  mutable std::vector<Buffer<std::byte>> copies_;
  mutable std::vector<const void *> columns_;
  mutable EntriesView copied_;
};

} // namespace td::formats
