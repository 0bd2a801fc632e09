// Arrays that end at a page which may not be touched, so that one element too far is a crash and not a surprise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <td/td.h>

namespace tdtest {

/// Bytes that lie directly before an inaccessible page; another one comes before the first page.
class GuardedMemory {
public:
  GuardedMemory() = default;
  explicit GuardedMemory(std::size_t bytes);
  GuardedMemory(const GuardedMemory &) = delete;
  GuardedMemory &operator=(const GuardedMemory &) = delete;
  GuardedMemory(GuardedMemory &&other) noexcept;
  GuardedMemory &operator=(GuardedMemory &&other) noexcept;
  ~GuardedMemory();

  void *data() const noexcept { return data_; }

private:
  void *mapping_ = nullptr;
  std::size_t mapped_ = 0;
  void *data_ = nullptr;
};

/// Size of a number of a td_type in bytes.
std::size_t size_of(td_type type) noexcept;

/// Numbers of a td_type, read and written as double, in guarded memory.
class Array {
public:
  Array() = default;
  Array(td_type type, int64_t count);
  Array(td_type type, const std::vector<double> &values);
  Array(td_type type, const std::vector<int64_t> &values);

  void *data() const noexcept { return memory_.data(); }
  int64_t size() const noexcept { return count_; }
  td_type type() const noexcept { return type_; }
  double get(int64_t i) const noexcept;
  void set(int64_t i, double v) noexcept;
  std::vector<double> values() const;

private:
  td_type type_ = TD_F64;
  int64_t count_ = 0;
  GuardedMemory memory_;
};

/// A column-major matrix with padding rows. Padding is NaN of a pattern that no computation makes; the last column has
/// none, so the guard page follows its last element.
class Matrix {
public:
  Matrix() = default;
  Matrix(td_type type, int64_t rows, int64_t cols, int64_t ld);

  void *data() const noexcept { return array_.data(); }
  int64_t rows() const noexcept { return rows_; }
  int64_t cols() const noexcept { return cols_; }
  int64_t ld() const noexcept { return ld_; }
  double get(int64_t i, int64_t r) const noexcept { return array_.get(i + r * ld_); }
  void set(int64_t i, int64_t r, double v) noexcept { array_.set(i + r * ld_, v); }
  bool padding_untouched() const;

private:
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  int64_t ld_ = 0;
  Array array_;
};

} // namespace tdtest
