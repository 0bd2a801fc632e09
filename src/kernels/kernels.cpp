#include "kernels/kernels.hpp"

#include "core/checked.hpp"
#include "core/error.hpp"
#include "kernels/building.hpp"

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

std::string failure_text(const SolveRecord &record, i64 rank) {
  switch (record.failure) {
  case SolveFailure::not_finite:
    return fmt::format("the normal-equation matrix has the value {} at ({}, {})", record.value, record.at / rank,
                       record.at % rank);
  case SolveFailure::no_convergence:
    return fmt::format("the eigen-decomposition of the {} x {} normal equations did not converge", rank, rank);
  case SolveFailure::none:
    break;
  }
  return {};
}

void Backend::mark(std::size_t moment) {
  if (moments_.size() <= moment)
    moments_.resize(moment + 1);
  moments_[moment] = std::chrono::steady_clock::now();
}

double Backend::seconds_between(std::size_t first, std::size_t second) {
  return std::chrono::duration<double>(moments_[second] - moments_[first]).count();
}

std::shared_ptr<const void> Backend::keep(const void *, i64, const char *what) {
  throw_error(Status::internal, "a copy of {} for kernels that read the original", what);
}

std::unique_ptr<Building> Backend::begin_building(const EntriesView &) { return nullptr; }
i64 Backend::room() const { return 0; }

void Backend::fetch(int, void *to, const void *from_host, i64 bytes) { upload(to, from_host, bytes); }

void Backend::borrow(const void *, std::string_view name) {
  throw_error(Status::internal, "{}: a caller's array for a backend without memory of its own", name);
}

void Backend::follow(void *) {
  throw_error(Status::unsupported, "a stream for {}: expected a context with a GPU", describe());
}

} // namespace td::kernels
