#include "solvers/replica.hpp"

#include <algorithm>
#include <cstring>

#include "core/checked.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

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
constexpr i64 staging_bytes = i64{1} << 20;

/// Calls body(begin, end, staging) for ranges of rows that fit a small host buffer.
template <class Body> void for_staged_rows(i64 rows, i64 row_bytes, Body &&body) {
  const i64 step = std::clamp<i64>(staging_bytes / row_bytes, 1, std::max<i64>(rows, 1));
  Buffer<std::byte> staging(step * row_bytes, "rows on their way between host and device");
  for (i64 begin = 0; begin < rows; begin += step)
    body(begin, std::min(begin + step, rows), staging.data());
}

} // namespace

DeviceMatrix::DeviceMatrix(kernels::Backend &backend, i64 rows, i64 cols, ValueType type, const char *what)
    : memory_(backend, bytes_of(rows, cols, size_of(type), what), what), type_(type), rows_(rows), cols_(cols) {}

Replica::Replica(kernels::Backend &backend, std::span<const i64> dims, i64 rank, ValueType type) : backend_(backend) {
  for (i64 d : dims) {
    factors_.emplace_back(backend, d, rank, type, "a worker's copy of a factor");
    views_.push_back(factors_.back().view());
  }
}

Replica::Replica(kernels::Backend &backend, const Ktensor &factors, const formats::Numbering &numbering)
    : Replica(backend, numbering.dims(), factors.rank(), factors.type()) {
  for (int m = 0; m < factors.order(); ++m)
    upload(m, factors.factor(m), numbering.rows(m));
}

void Replica::upload(int mode, ConstMatrix from, std::span<const i64> rows) {
  upload_rows(backend_, from, rows, factors_[static_cast<std::size_t>(mode)].view());
}

void Replica::download(int mode, Matrix to, std::span<const i64> rows) const {
  download_rows(backend_, factors_[static_cast<std::size_t>(mode)].view(), to, rows);
}

void upload_rows(kernels::Backend &backend, ConstMatrix from, std::span<const i64> rows, Matrix to) {
  const i64 row_bytes = to.cols * size_of(to.type);
  if (rows.empty())
    return backend.upload(to.data, from.data, to.rows * row_bytes);
  if (!backend.has_own_memory())
    return backend.gather_rows(from, rows.data(), to);
  for_staged_rows(to.rows, row_bytes, [&](i64 begin, i64 end, std::byte *staging) {
    for (i64 k = begin; k < end; ++k) {
      const i64 row = rows[static_cast<std::size_t>(k)];
      std::memcpy(staging + (k - begin) * row_bytes, from.slice(row, row + 1).data,
                  static_cast<std::size_t>(row_bytes));
    }
    backend.upload(to.slice(begin, end).data, staging, (end - begin) * row_bytes);
  });
}

void download_rows(kernels::Backend &backend, ConstMatrix from, Matrix to, std::span<const i64> rows) {
  const i64 row_bytes = to.cols * size_of(to.type);
  if (rows.empty())
    return backend.download(to.data, from.data, from.rows * row_bytes);
  if (!backend.has_own_memory())
    return parallel_ranges(backend.threads(), from.rows, rows_worth_a_thread(from.cols), [&](Range some) {
      for (i64 k = some.begin; k < some.end; ++k) {
        const i64 row = rows[static_cast<std::size_t>(k)];
        std::memcpy(to.slice(row, row + 1).data, from.slice(k, k + 1).data, static_cast<std::size_t>(row_bytes));
      }
    });
  for_staged_rows(from.rows, row_bytes, [&](i64 begin, i64 end, std::byte *staging) {
    backend.download(staging, from.slice(begin, end).data, (end - begin) * row_bytes);
    for (i64 k = begin; k < end; ++k) {
      const i64 row = rows[static_cast<std::size_t>(k)];
      std::memcpy(to.slice(row, row + 1).data, staging + (k - begin) * row_bytes, static_cast<std::size_t>(row_bytes));
    }
  });
}

DeviceNumbers::DeviceNumbers(kernels::Backend &backend, i64 count, const char *what)
    : backend_(&backend), count_(count), memory_(backend, bytes_of(count, 1, number_bytes, what), what) {}

void DeviceNumbers::upload(std::span<const double> from) {
  backend_->upload(data(), from.data(), static_cast<i64>(from.size()) * number_bytes);
}

std::vector<double> DeviceNumbers::download() const {
  std::vector<double> to(static_cast<std::size_t>(count_));
  backend_->download(to.data(), data(), count_ * number_bytes);
  return to;
}

} // namespace td::solvers
