#include "kernels/kernels.hpp"

#include "core/checked.hpp"
#include "core/error.hpp"

namespace td::kernels {

i64 entries_of(const TensorView &x) {
  if (const auto *dense = std::get_if<DenseView>(&x))
    return checked_product(dense->dims).value(); // a dense tensor with more elements cannot be built
  if (const auto *coo = std::get_if<CooView>(&x))
    return coo->nnz;
  if (const auto *blco = std::get_if<BlcoView>(&x))
    return blco->nnz;
  return std::get<SortedView>(x).nnz;
}

std::shared_ptr<const void> Backend::keep(const void *, i64, const char *what) {
  throw_error(Status::internal, "a copy of {} for kernels that read the original", what);
}

void Backend::borrow(const void *, std::string_view name) {
  throw_error(Status::internal, "{}: a caller's array for a backend without memory of its own", name);
}

} // namespace td::kernels
