// Weights and factor matrices, and the linear algebra on them that needs no tensor.
#pragma once

#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "core/columns.hpp"
#include "core/labels.hpp"
#include "core/memory.hpp"
#include "core/views.hpp"

namespace td {

/// One of the blocks that the rows of each factor are partitioned into: of a factor with d rows, those of
/// part_of({0, d}, number, count).
struct RowBlock {
  i64 number = 0;
  i64 count = 1;
  /// number == count: no rows.
  Range of(i64 rows) const noexcept { return number < count ? part_of({0, rows}, number, count) : Range{rows, rows}; }
  bool operator==(const RowBlock &) const = default;
};

/// Factors are rank-contiguous: entry (i, r) of a factor is at i * rank + r. Weights are f64. All rows are here, or one
/// block of them; whoever holds the others calls the functions that take a Meeting at the same time.
class Ktensor {
public:
  Ktensor() = default;
  /// Weights are 1 and factors 0. Checks order, dims and rank (Status::shape), and that there is room
  /// (Status::host_memory).
  Ktensor(std::span<const i64> dims, i64 rank, ValueType type, const MemoryBudget &budget = {}, RowBlock block = {});
  /// The same, but the caller fills the factors: large memory is touched once, by the threads that write it.
  static Ktensor unfilled(std::span<const i64> dims, i64 rank, ValueType type, const MemoryBudget &budget = {},
                          RowBlock block = {});
  /// What such a ktensor takes.
  static MemoryNeed need(std::span<const i64> dims, i64 rank, ValueType type, RowBlock block = {});
  i64 bytes() const { return need(dims_, rank_, type_, block_).total(); }
  Ktensor copy(const MemoryBudget &budget = {}) const;
  Ktensor convert(ValueType type, const MemoryBudget &budget = {}) const;
  /// A block of this one, which has all rows.
  Ktensor cut(RowBlock block) const;

  int order() const noexcept { return static_cast<int>(dims_.size()); }
  std::span<const i64> dims() const noexcept { return dims_; }
  i64 rank() const noexcept { return rank_; }
  ValueType type() const noexcept { return type_; }
  std::span<double> weights() noexcept { return weights_; }
  std::span<const double> weights() const noexcept { return weights_; }
  RowBlock block() const noexcept { return block_; }
  bool whole() const noexcept { return block_ == RowBlock{}; }
  /// The rows of a factor that are here.
  Range rows(int mode) const noexcept { return block_.of(dims_[static_cast<std::size_t>(mode)]); }
  /// Rows that are here.
  Matrix factor(int mode) noexcept;
  ConstMatrix factor(int mode) const noexcept;

  /// Names of modes and indices; copies and conversions have the same.
  const Labels &labels() const noexcept { return labels_; }
  Labels &labels() noexcept { return labels_; }

  /// These copy from and to column-major arrays of this ktensor's type with a leading dimension.
  void set_factor(int mode, const void *column_major, i64 ld); // checks ld and that entries are finite
  void get_factor(int mode, void *column_major, i64 ld) const; // checks ld

  void normalize(const Meeting &others = {});
  void arrange(const Meeting &others = {});
  void fixsigns(const Meeting &others = {});

  double norm(const Meeting &others = {}) const; // infinite where it is beyond f64

private:
  std::vector<i64> dims_;
  RowBlock block_;
  i64 rank_ = 0;
  ValueType type_ = ValueType::f64;
  std::vector<double> weights_;
  std::vector<ValueBuffer> factors_;
  Labels labels_;
};

/// An entry of a factor's column.
struct Leader {
  i64 index = 0;
  double value = 0;
};

/// The `most` entries of largest magnitude in a column of a factor, largest first and of equal ones the first; zeros
/// are left out.
std::vector<Leader> leaders(const Ktensor &k, int mode, i64 component, i64 most);

/// The result is infinite where it is beyond f64.
double dot(const Ktensor &a, const Ktensor &b, const Meeting &others = {});

// Values of a model that are beyond the largest number of their type are refused (Status::numerical).

/// Checks coordinates (Status::index) and writes n values.
void values_at(const Ktensor &k, const EntriesView &coordinates, double *values);

/// Writes the full tensor; strides as in td_tensor_get_dense, empty for first index fastest.
void full(const Ktensor &k, std::span<const i64> strides, ValueType type, void *values);

struct Score {
  double value = 0;
  std::vector<i64> match; // per component of a: component of b, or -1
};
/// Takes a number for each pair of components, if the budget has room for them.
Score score(const Ktensor &a, const Ktensor &b, bool use_weights, const MemoryBudget &budget = {},
            const Meeting &others = {});

} // namespace td
