// A tensor as the library holds it: what the plan chose to store, and facts taken when it was made.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/options.hpp"
#include "formats/formats.hpp"

namespace td::plan {

struct Facts {
  i64 nnz = 0;
  i64 duplicates = 0;
  i64 zeros = 0;
  double norm = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
};

/// The same bits for any number of threads. The norm neither overflows nor underflows on the way; where the result
/// itself is beyond f64 it is infinite, and so is the sum.
Facts facts_of(const ValueBuffer &values, int threads);

/// Bytes of host memory that can be had without swapping; nothing if the system does not say.
std::optional<i64> available_memory();

class Tensor {
public:
  /// Checks and copies what is given. Option "format": auto stores a copy sorted by each mode if these take at most a
  /// quarter of the memory that is available, else BLCO; beyond formats::max_linear_bits, coordinates.
  static std::shared_ptr<const Tensor> make_sparse(const EntriesView &entries, const Options &options, int threads,
                                                   std::string source);
  static std::shared_ptr<const Tensor> make_dense(const DenseArrayView &array, int threads, std::string source);

  int order() const noexcept { return static_cast<int>(dims_.size()); }
  std::span<const i64> dims() const noexcept { return dims_; }
  ValueType type() const noexcept { return type_; }
  bool sparse() const noexcept { return !dense_; }
  const Facts &facts() const noexcept { return facts_; }
  const std::string &source() const noexcept { return source_; }
  std::string_view format() const noexcept { return format_; }
  i64 bytes() const;
  std::string describe() const;

  /// What MTTKRP in `mode` works on.
  kernels::TensorView view(int mode) const;

  /// Whether view(mode) is divided between workers by output rows (else by stored entries).
  bool divided_by_rows() const noexcept { return dense_.has_value() || !sorted_.empty(); }

  /// Stored entries before each row of `mode`, for balancing: prefix[dims[mode] + 1] would be large, so this gives the
  /// boundaries directly: worker k of n owns rows [boundary[k], boundary[k + 1]).
  std::vector<i64> row_boundaries(int mode, int workers) const;

  /// Coordinates in canonical order (sparse only); decoded when they are not what is stored. `holder` keeps them.
  kernels::CooView coordinates(std::optional<formats::Coo> &holder, int threads) const;

  /// The elements of a dense tensor, else null.
  const formats::Dense *dense() const noexcept { return dense_ ? &*dense_ : nullptr; }

  /// Stored entries in each slice of a mode.
  void slice_counts(int mode, i64 *counts) const;

private:
  Tensor() = default;
  void store(const EntriesView &entries, std::string_view format, bool refuse_duplicates, int threads);

  std::vector<i64> dims_;
  ValueType type_ = ValueType::f64;
  Facts facts_;
  std::string source_;
  std::string format_;
  std::optional<formats::Coo> coo_;
  std::optional<formats::Blco> blco_;
  std::vector<formats::Sorted> sorted_;
  std::optional<formats::Dense> dense_;
};

} // namespace td::plan
