// Matrices in a backend's memory.
#pragma once

#include <span>
#include <vector>

#include "core/ktensor.hpp"
#include "formats/numbering.hpp"
#include "kernels/backend.hpp"

namespace td::solvers {

/// A matrix of rows x cols without gaps, uninitialised.
class DeviceMatrix {
public:
  DeviceMatrix() = default;
  DeviceMatrix(kernels::Backend &backend, i64 rows, i64 cols, ValueType type, const char *what);

  Matrix view() const noexcept { return {memory_.data(), type_, rows_, cols_, cols_}; }
  /// The first `rows` rows.
  Matrix view(i64 rows) const noexcept { return view().slice(0, rows); }
  i64 bytes() const noexcept { return memory_.bytes(); }

private:
  kernels::DeviceBuffer memory_;
  ValueType type_ = ValueType::f64;
  i64 rows_ = 0;
  i64 cols_ = 0;
};

/// A worker's copy of all factors.
class Replica {
public:
  Replica(kernels::Backend &backend, std::span<const i64> dims, i64 rank, ValueType type);
  /// The copy holds the rows that have a number.
  Replica(kernels::Backend &backend, const Ktensor &factors, const formats::Numbering &numbering);

  /// The host's matrices are rank-contiguous and without gaps. With `rows`, the copy holds only those of the host's.
  void upload(int mode, ConstMatrix from, std::span<const i64> rows);
  void download(int mode, Matrix to, std::span<const i64> rows) const;

  Matrix operator[](int mode) const noexcept { return factors_[static_cast<std::size_t>(mode)].view(); }
  std::span<const ConstMatrix> views() const noexcept { return views_; }

private:
  kernels::Backend &backend_;
  std::vector<DeviceMatrix> factors_;
  std::vector<ConstMatrix> views_;
};

/// Copies between rows of a host matrix and consecutive ones of a backend's; `rows` empty: the same rows. The matrices
/// have no gaps.
void upload_rows(kernels::Backend &backend, ConstMatrix from, std::span<const i64> rows, Matrix to);
void download_rows(kernels::Backend &backend, ConstMatrix from, Matrix to, std::span<const i64> rows);

/// f64 numbers in a backend's memory.
class DeviceNumbers {
public:
  DeviceNumbers() = default;
  DeviceNumbers(kernels::Backend &backend, i64 count, const char *what);
  double *data() const noexcept { return memory_.f64(); }
  i64 count() const noexcept { return count_; }
  std::span<double> span() const noexcept { return {memory_.f64(), static_cast<std::size_t>(count_)}; }
  void upload(std::span<const double> from);
  std::vector<double> download() const;

private:
  kernels::Backend *backend_ = nullptr;
  i64 count_ = 0;
  kernels::DeviceBuffer memory_;
};

} // namespace td::solvers
