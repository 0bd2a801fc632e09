// Partial products of a dense tensor in the order of CP-ALS's updates: which one each MTTKRP is computed from.
//
// A partial product keeps some modes, cyclic neighbours, and has the others' factors multiplied in: a row of R numbers
// for each combination of the kept modes' indices, a cell. It serves MTTKRP in each mode that it keeps, one after the
// other, until a mode that it does not keep has been updated. One that keeps all modes but the one just updated serves
// all the others' next updates, across sweeps: so N - 1 sweeps read the tensor N times, as in the multi-sweep dimension
// tree of Ma and Solomonik (arXiv:2010.12056). One that keeps half the modes is smaller and serves half as many.
//
// Once the first mode that a product serves is updated, the product may be summed over it, times its factor: what is
// left serves the modes after it, and is so much smaller that the product is read twice, however many modes it serves.
//
// Of all sequences of partial products the tree takes the one whose predicted time an update is least. Which products
// these are is decided by shape, rank, order of updates and the memory that they may take, and where in the sequence an
// update stands by its number, so that a run that goes on from a checkpoint computes what it would have computed.
#pragma once

#include <array>
#include <optional>

#include "kernels/backend.hpp"
#include "plan/groups.hpp"

namespace td::plan {

struct PartialProduct {
  std::vector<int> modes; // kept, ascending
  std::vector<i64> dims;  // of these
  i64 cells = 0;
  bool wraps = false; // it keeps the first and the last mode, but none in between: Kernels::mttkrp_slabs
  // The tensor with neighbouring kept modes merged into one, and which mode stands at each place (-1: kept ones).
  std::vector<i64> merged_dims;
  std::vector<int> mode_at;
  int merged_mode = 0; // unless it wraps

  PartialProduct() = default;
  /// Keeps `count` modes, at least one and not all, from `first` on, cyclically.
  PartialProduct(std::span<const i64> dims, int first, int count);
  bool keeps(int mode) const { return place(mode) < modes.size(); }
  /// What is left of it summed over one mode that it keeps, of three or more: the first or the last in memory. That has
  /// no merged dims: it is not computed from the tensor.
  PartialProduct without(int mode) const;
  /// The mode's place among the kept ones; modes.size() if it is not kept.
  std::size_t place(int mode) const;
  /// The rows of a dense tensor's partial product that one of some workers computes.
  Range cells_of(int worker, int workers) const;
};

/// A product's cells as MTTKRP sums them over one mode, the first or the last in memory: two modes, in one of which the
/// rows of what is left are those of the result.
struct SumOverMode {
  std::array<i64, 2> dims;
  int result; // the mode of what is left

  SumOverMode(const PartialProduct &p, int mode);
};

/// The product that an MTTKRP by itself goes through, where the option asks for one.
std::optional<PartialProduct> product_by_itself(std::span<const i64> dims, const GroupsSetting &setting, int mode);

/// What stands for matrices in predictions, which read no numbers.
Matrix unread_matrix(i64 rows, i64 rank, ValueType type);
std::vector<ConstMatrix> unread_factors(std::span<const i64> dims, i64 rank, ValueType type);

class SweepTree {
public:
  struct Request {
    std::span<const i64> dims;
    ValueType type = ValueType::f64;
    i64 rank = 1;
    GroupsSetting groups;
    std::vector<int> updated;                  // modes, in the order of their updates
    const kernels::Backend *backend = nullptr; // whose predictions decide
    double most_bytes = 0;                     // that a partial product may take, by auto
  };

  explicit SweepTree(const Request &request);

  /// The product that update number `step` of a run goes through; null: MTTKRP of all of the tensor.
  const PartialProduct *at(i64 step) const;
  /// What is left of that product, summed over modes updated before, which the update goes through instead; null: the
  /// product itself.
  const PartialProduct *left_at(i64 step) const;
  /// Whether it reads the tensor, after the first sweep.
  bool reads(i64 step) const { return reads_[static_cast<std::size_t>(step % period())]; }
  const std::vector<int> &updated() const noexcept { return request_.updated; }
  /// Updates after which the sequence begins again.
  i64 period() const { return static_cast<i64>(steps_.size()); }
  /// Rows of the largest partial product and of what is left of it; 0 without any.
  i64 most_cells() const;
  /// How often a sweep reads the tensor, on average.
  double passes() const;
  /// What the products of a period keep, in order: "0,1|2,3".
  std::string text() const;

private:
  struct Run;
  class Serving;

  static std::vector<Run> cheapest_cycle(const std::vector<Run> &all, int places);
  double bytes_of(i64 cells) const;
  void add_named();
  void add_multi_sweep();
  void add_cheapest();
  void find_reads();
  int product(int first, int count);
  void take(const Run &s, int number);
  i64 serves(const PartialProduct &p, i64 step) const;
  double seconds_of(const PartialProduct &p, const kernels::Rates &rates) const;
  double seconds_of(const kernels::CellsView &cells, std::span<const ConstMatrix> factors, int place,
                    const kernels::Rates &rates) const;
  double seconds_to_sum(const PartialProduct &p, int mode, const kernels::Rates &rates) const;
  int mode_of(i64 step) const { return request_.updated[static_cast<std::size_t>(step) % request_.updated.size()]; }

  Request request_;
  std::vector<i64> dims_;
  std::vector<PartialProduct> products_;
  std::vector<PartialProduct> left_;
  std::vector<int> steps_;      // of a period, the number of the product; -1: none
  std::vector<int> left_steps_; // the same of what is left of it
  std::vector<bool> reads_;     // of a period
};

} // namespace td::plan
