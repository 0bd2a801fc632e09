// Tensors and factors as plain lists of numbers, made from a seed; and how they become td tensors.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/guarded.hpp"
#include "support/handles.hpp"

namespace tdtest {

/// TD_TEST_SEED, or a fixed number; printed when a test fails.
uint64_t base_seed();

/// TD_TEST_LIGHT is set: leave out the heaviest combinations, as under a sanitizer a test takes 5 to 20 times as long.
bool light();

/// Random numbers that are the same with every standard library.
class Random {
public:
  explicit Random(uint64_t stream) : engine_(base_seed() * 0x9e3779b97f4a7c15u + stream) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  /// A multiple of 2^-52 in (-1, 1).
  double symmetric() { return static_cast<double>(static_cast<int64_t>(engine_()) >> 11) * 0x1p-52; }
  /// A number in [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

private:
  std::mt19937_64 engine_;
};

/// Coordinates (0-based, one list a mode) and values.
struct Entries {
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> indices;
  std::vector<double> values;

  explicit Entries(std::vector<int64_t> d) : dims(std::move(d)), indices(dims.size()) {}
  int order() const { return static_cast<int>(dims.size()); }
  int64_t nnz() const { return static_cast<int64_t>(values.size()); }
  void add(const std::vector<int64_t> &coordinate, double value);
  std::vector<int64_t> coordinate(int64_t k) const;
  /// The same entries in the order given by a permutation of 0 .. nnz - 1.
  Entries permuted(const std::vector<int64_t> &entry_order) const;
  /// Mode m of the result is mode modes[m] of this.
  Entries with_modes(const std::vector<int> &modes) const;
};

/// A td_type's nearest number to v.
double rounded(double v, td_type type);

/// nnz entries at uniform coordinates (which may repeat), values in (-1, 1) rounded to the type.
Entries random_entries(Random &random, std::vector<int64_t> dims, int64_t nnz, td_type type);
/// Every cell once, first index fastest.
Entries random_cells(Random &random, std::vector<int64_t> dims, td_type type);
/// Every coordinate at most once.
Entries distinct_entries(Random &random, std::vector<int64_t> dims, int64_t nnz, td_type type);

std::vector<int64_t> random_permutation(Random &random, int64_t n);

/// Factor matrices, column-major without padding.
struct Factors {
  std::vector<int64_t> dims;
  int64_t rank = 0;
  std::vector<std::vector<double>> a;

  Factors(std::vector<int64_t> d, int64_t r);
  double &at(int mode, int64_t i, int64_t r) { return a[static_cast<std::size_t>(mode)][index(mode, i, r)]; }
  double at(int mode, int64_t i, int64_t r) const { return a[static_cast<std::size_t>(mode)][index(mode, i, r)]; }

private:
  std::size_t index(int mode, int64_t i, int64_t r) const {
    return static_cast<std::size_t>(i + r * dims[static_cast<std::size_t>(mode)]);
  }
};
Factors random_factors(Random &random, const std::vector<int64_t> &dims, int64_t rank, td_type type);

struct SparseForm {
  td_type value_type = TD_F64;
  td_type index_type = TD_I64;
  int32_t index_base = 0;
};
Tensor make_sparse(td_context *context, const Entries &entries, const SparseForm &form = {},
                   const td_options *options = nullptr);
/// Elements are in td's default order; cells that are not among the entries are 0, repeated ones are summed.
Tensor make_dense(td_context *context, const Entries &entries, td_type value_type = TD_F64,
                  const td_options *options = nullptr);
/// Sparse in the named format, or dense for "dense"; "sorted_drop": without its empty rows.
Tensor make_tensor(td_context *context, const std::string &format, const Entries &entries, const SparseForm &form = {});

Ktensor make_ktensor(td_context *context, const Factors &factors, td_type type = TD_F64,
                     const std::vector<double> &weights = {});
Factors factors_of(const td_ktensor *k);

/// The td result of an MTTKRP, column-major without padding, through matrices with padding that must stay untouched
/// (throws otherwise).
std::vector<double> mttkrp(td_context *context, const td_tensor *x, const Factors &factors, int mode, td_type type);
/// The same through td_mttkrp_ktensor.
std::vector<double> mttkrp_ktensor(td_context *context, const td_tensor *x, const td_ktensor *k, int mode);

} // namespace tdtest
