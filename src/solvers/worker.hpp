// What one worker does of the products that all compute together.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "plan/settings.hpp"
#include "tensor/part.hpp"
#include "tensor/row_exchange.hpp"

namespace td::solvers {

/// Every worker owns some rows of each factor, maybe none.
class Worker {
public:
  /// With Sharding::deterministic each worker reads all stored entries for its own rows where others would add up
  /// partial results, and adds them in stored order, so that sums do not depend on the number of workers or threads.
  Worker(const tensor::Tensor &x, const tensor::Sharding &sharding, kernels::Backend &backend, Communicator &others)
      : x_(x), sharding_(sharding), others_(others),
        part_(x, sharding, x.distribution() != nullptr ? 0 : others.rank(), backend, others) {
    if (const tensor::Distribution *d = x.distribution())
      rows_.emplace(*d, backend, others);
  }

  const Ranges &own(int mode) const {
    if (const tensor::Distribution *d = x_.distribution())
      return d->own(mode);
    return owned(mode)[static_cast<std::size_t>(others_.rank())];
  }
  const tensor::Part &part() const noexcept { return part_; }
  bool deterministic() const noexcept { return sharding_.deterministic(); }
  kernels::Conflicts conflicts() const noexcept {
    return deterministic() ? kernels::Conflicts::owner : x_.settings().conflicts;
  }

  /// Computes this worker's own rows of out; its other rows may be overwritten.
  void mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out,
              std::span<const double *const> exponents = {}) const;

  /// Where each worker can compute its rows of a mode some at a time (tensor::Part): what of its load goes with each of
  /// gather_chunks, which it then computes one after the other; sums of rows that several workers share are merged when
  /// all have been.
  bool cuts_rows(int mode) const { return part_.cuts_rows(mode); }
  std::vector<tensor::LoadPart> cut_load(int mode, const std::vector<std::vector<Ranges>> &chunks) const;
  void mttkrp_part(int mode, std::span<const ConstMatrix> factors, Matrix out, std::span<const double *const> exponents,
                   const tensor::LoadPart &part) const {
    part_.mttkrp_part(mode, args(mode, factors, out, exponents), part);
  }
  void reduce_split(int mode, Matrix out) const;
  /// [workers] the rows of a mode, by owner, whose sums several workers share.
  std::vector<Ranges> split_rows(int mode) const;

  /// MTTKRP in a group's merged modes, for this worker's cells; if deterministic, then for all. `outside`: the other
  /// modes' factors, by their places in the merged tensor. Gives the cells that were computed.
  Range partial_product(int group, std::span<const ConstMatrix> outside, Matrix out) const;

  /// The same of a dense tensor's partial product.
  Range partial_product(const plan::PartialProduct &product, std::span<const ConstMatrix> outside, Matrix out) const;

  /// This worker's own rows of out := sum over workers of theirs.
  void reduce(int mode, Matrix out) const;
  /// The rows that others own := theirs.
  void gather(int mode, Matrix a) const;
  /// The same, and numbers of all workers become one.
  void gather(int mode, Matrix a, std::span<const Reduced> sums) const;
  /// Parts of the rows that each worker owns, in order, for an exchange beside the work; empty where there is none.
  /// `ratio` is as plan::gather_chunks takes it.
  std::vector<std::vector<Ranges>> gather_chunks(int mode, plan::Overlap overlap, i64 row_bytes, double ratio) const;
  /// Where processes share the tensor: the rows of each one's block, on its host, := those that they hold.
  void settle(int mode, ConstMatrix held, Matrix block) const { rows_->settle(mode, held, block); }
  /// The rows that are held here := those of the blocks.
  void fetch(int mode, ConstMatrix block, Matrix held) const { rows_->fetch(mode, block, held); }

private:
  std::span<const Ranges> owned(int mode) const { return sharding_.rows(mode).owned; }
  kernels::MttkrpArgs args(int mode, std::span<const ConstMatrix> factors, Matrix out,
                           std::span<const double *const> exponents) const;

  const tensor::Tensor &x_;
  const tensor::Sharding &sharding_;
  Communicator &others_;
  tensor::Part part_;
  std::optional<tensor::RowExchange> rows_; // of a tensor that processes share
};

} // namespace td::solvers
