#include "solvers/border.hpp"

#include <algorithm>

#include "core/buffer.hpp"
#include "core/relayout.hpp"

namespace td::solvers {

namespace {

constexpr i64 staging_bytes = i64{32} << 20; // columns that pass between host and device at a time

/// The rows' list where the backend's kernels read it; null for none.
class RowList {
public:
  RowList(kernels::Backend &backend, std::span<const i64> rows) : rows_(rows.empty() ? nullptr : rows.data()) {
    if (rows.empty() || backend.memory() == nullptr)
      return;
    copy_ = kernels::DeviceBuffer(backend, static_cast<i64>(rows.size_bytes()), "a list of rows");
    backend.upload(copy_.data(), rows.data(), copy_.bytes());
    rows_ = static_cast<const i64 *>(copy_.data());
  }
  const i64 *data() const noexcept { return rows_; }

private:
  const i64 *rows_;
  kernels::DeviceBuffer copy_;
};

/// Calls body(columns, staging) for ranges of columns of a host matrix, with room for them on the device.
template <class Body> void for_staged_columns(kernels::Backend &backend, i64 columns, i64 column_bytes, Body &&body) {
  const i64 step = std::clamp<i64>(staging_bytes / std::max<i64>(column_bytes, 1), 1, std::max<i64>(columns, 1));
  const kernels::DeviceBuffer staging(backend, step * column_bytes, "columns on their way between host and device");
  for (i64 begin = 0; begin < columns; begin += step)
    body(Range{begin, std::min(begin + step, columns)}, staging.data());
}

/// Calls copy(host, device, bytes) for what follows one another of a host matrix's columns, and without gaps on the
/// device.
template <class Copy> void copy_columns(const ConstMatrix &host, Range columns, void *staging, Copy &&copy) {
  const i64 column = host.cols * size_of(host.type);
  auto *to = static_cast<char *>(staging);
  const ConstMatrix some = host.slice(columns.begin, columns.end);
  if (host.ld == host.cols)
    return copy(some.data, to, columns.size() * column);
  for (i64 r = 0; r < columns.size(); ++r)
    copy(some.slice(r, r + 1).data, to + r * column, column);
}

/// Calls body(some, staged) for ranges of the worker's rows, with room for them on the host.
template <class Body> void for_host_rows(const ConstMatrix &a, Body &&body) {
  const i64 row_bytes = a.cols * size_of(a.type);
  const i64 step = std::clamp<i64>(staging_bytes / row_bytes, 1, std::max<i64>(a.rows, 1));
  Buffer<std::byte> rows(std::min(step, a.rows) * row_bytes, "rows on their way between host and device");
  for (i64 begin = 0; begin < a.rows; begin += step) {
    const Range some{begin, std::min(begin + step, a.rows)};
    body(some, Matrix{rows.data(), a.type, some.size(), a.cols, a.cols});
  }
}

} // namespace

void take_columns(kernels::Backend &backend, ConstMatrix from, bool there, std::span<const i64> rows, Matrix to) {
  if (there || backend.memory() == nullptr)
    return backend.gather_transposed(from, RowList(backend, rows).data(), to);
  if (!rows.empty()) { // only the rows that are needed go to the device
    for_host_rows(to, [&](Range some, Matrix staged) {
      gather_transposed(from, rows.data() + some.begin, staged, {0, some.size()});
      backend.upload(to.slice(some.begin, some.end).data, staged.data, staged.rows * staged.cols * size_of(to.type));
    });
    return;
  }
  const ConstMatrix host(from.data, from.type, from.rows, to.rows, from.ld);
  for_staged_columns(backend, from.rows, to.rows * size_of(from.type), [&](Range some, void *staging) {
    copy_columns(host, some, staging,
                 [&](const void *at, void *device, i64 bytes) { backend.upload(device, at, bytes); });
    backend.gather_transposed({staging, from.type, some.size(), to.rows, to.rows}, nullptr,
                              to.columns(some.begin, some.end));
  });
}

void give_columns(kernels::Backend &backend, ConstMatrix from, std::span<const i64> rows, Matrix to, bool there) {
  if (there || backend.memory() == nullptr)
    return backend.scatter_transposed(from, RowList(backend, rows).data(), to);
  if (!rows.empty()) {
    for_host_rows(from, [&](Range some, Matrix staged) {
      backend.download(staged.data, from.slice(some.begin, some.end).data,
                       staged.rows * staged.cols * size_of(to.type));
      scatter_transposed(staged, rows.data() + some.begin, to, {0, some.size()});
    });
    return;
  }
  const ConstMatrix host(to.data, to.type, to.rows, from.rows, to.ld);
  for_staged_columns(backend, to.rows, from.rows * size_of(to.type), [&](Range some, void *staging) {
    backend.scatter_transposed(from.columns(some.begin, some.end), nullptr,
                               {staging, to.type, some.size(), from.rows, from.rows});
    copy_columns(host, some, staging, [&](const void *at, void *device, i64 bytes) {
      backend.download(const_cast<void *>(at), device, bytes);
    });
  });
}

std::vector<i64> first_not_finite(kernels::Backend &backend, std::span<const ConstMatrix> matrices) {
  std::vector<i64> at(matrices.size());
  if (matrices.empty())
    return at;
  const i64 bytes = static_cast<i64>(at.size() * sizeof(i64));
  const kernels::DeviceBuffer found(backend, bytes, "where matrices are not finite");
  for (std::size_t k = 0; k < matrices.size(); ++k)
    backend.first_not_finite(matrices[k], static_cast<i64 *>(found.data()) + k);
  backend.download(at.data(), found.data(), bytes);
  return at;
}

} // namespace td::solvers
