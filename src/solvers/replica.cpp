#include "solvers/replica.hpp"

#include "core/checked.hpp"
#include "core/error.hpp"

namespace td::solvers {

namespace {

i64 bytes_of(i64 rows, i64 cols, i64 element, const char *what) {
  const auto count = checked_multiply(rows, cols);
  const auto bytes = count ? checked_multiply(*count, element) : std::nullopt;
  if (!bytes)
    throw_error(Status::host_memory, "out of host memory: {} x {} elements for {}", rows, cols, what);
  return *bytes;
}

constexpr i64 number_bytes = sizeof(double);

} // namespace

DeviceMatrix::DeviceMatrix(kernels::Backend &backend, i64 rows, i64 cols, ValueType type, const char *what)
    : memory_(backend, bytes_of(rows, cols, size_of(type), what), what), type_(type), rows_(rows), cols_(cols) {}

Replica::Replica(kernels::Backend &backend, std::span<const i64> dims, i64 rank, ValueType type) : backend_(backend) {
  for (i64 d : dims) {
    factors_.emplace_back(backend, d, rank, type, "a worker's copy of a factor");
    views_.push_back(factors_.back().view());
  }
}

Replica::Replica(kernels::Backend &backend, const Ktensor &factors)
    : Replica(backend, factors.dims(), factors.rank(), factors.type()) {
  for (int m = 0; m < factors.order(); ++m)
    upload(m, factors.factor(m));
}

void Replica::upload(int mode, ConstMatrix from) {
  const DeviceMatrix &to = factors_[static_cast<std::size_t>(mode)];
  backend_.upload(to.view().data, from.data, to.bytes());
}

void Replica::download(Ktensor &to) const {
  for (int m = 0; m < to.order(); ++m) {
    const DeviceMatrix &from = factors_[static_cast<std::size_t>(m)];
    backend_.download(to.factor(m).data, from.view().data, from.bytes());
  }
}

DeviceNumbers::DeviceNumbers(kernels::Backend &backend, i64 count, const char *what)
    : backend_(backend), count_(count), memory_(backend, bytes_of(count, 1, number_bytes, what), what) {}

void DeviceNumbers::upload(std::span<const double> from) {
  backend_.upload(data(), from.data(), static_cast<i64>(from.size()) * number_bytes);
}

std::vector<double> DeviceNumbers::download() const {
  std::vector<double> to(static_cast<std::size_t>(count_));
  backend_.download(to.data(), data(), count_ * number_bytes);
  return to;
}

} // namespace td::solvers
