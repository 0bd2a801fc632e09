#include "space.hpp"

#include <fmt/format.h>

#include "guard.hpp"

namespace td::c_api {

Space::Space(const Context &context, td_space space) : budget_(context.budget()), context_(context) {
  kernels::Backend &backend = *context.backends.front();
  if (space == TD_DEVICE && backend.has_own_memory())
    gpu_ = &backend;
  else
    require_host(space);
}

void Space::require_here(const void *array, std::string_view name) const {
  if (gpu_ != nullptr)
    return;
  for (const auto &backend : context_.backends)
    if (backend->holds(array))
      throw_error(Status::argument,
                  "{}: is in the memory of {}, expected an array in host memory, as space = TD_HOST says", name,
                  backend->describe());
}

void Space::require_alone() const {
  if (gpu_ != nullptr && context_.backends.size() > 1)
    throw_error(Status::unsupported,
                "option 'borrow' = 1 of an array on a GPU: the {} GPUs of the context cannot all work on it where it "
                "lies; expected a context of that GPU alone, or an array in host memory",
                context_.backends.size());
}

void Space::borrow(const void *array, std::string_view name) const {
  if (gpu_ != nullptr)
    gpu_->borrow(array, name);
}

const void *Space::readable(const void *array, i64 begin, i64 end, i64 element_bytes, std::string_view name) {
  if (gpu_ == nullptr || end == begin)
    return array;
  borrow(array, name);
  const auto bytes = checked_multiply(end - begin, element_bytes);
  if (!bytes)
    throw_error(Status::shape, "{}: more than 2^63 - 1 bytes", name);
  MemoryNeed need;
  need.add("a copy on the host", static_cast<double>(*bytes));
  budget_.require(fmt::format("{}, an array on the GPU,", name), need);
  budget_ = budget_.beside(*bytes);
  auto &copy = copies_.emplace_back(*bytes, "a copy of a caller's array");
  gpu_->download(copy.data(), static_cast<const char *>(array) + begin * element_bytes, *bytes);
  return copy.data() - begin * element_bytes;
}

} // namespace td::c_api
