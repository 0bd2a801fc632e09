// The update of CP-ALS by QR decompositions instead of normal equations; Minster, Viviano, Liu and Ballard 2023.
#pragma once

#include <vector>

#include "core/factorizations.hpp"
#include "solvers/products.hpp"
#include "solvers/replica.hpp"
#include "solvers/worker.hpp"

namespace td::solvers {

/// With A_m = Q_m R_m the Khatri-Rao product is K = (Q_{N-1} (x) ... (x) Q_0) (R_{N-1} (.) ... (.) R_0). The second
/// part is small; the tensor times the first is an MTTKRP with a column for each combination of the Q's columns. Small
/// matrices are the host's, on every backend.
class QrUpdate {
public:
  /// References must live as long. Throws Status::unsupported unless products are in f64.
  QrUpdate(const tensor::Tensor &x, const Ktensor &start, const Worker &worker, kernels::Backend &backend,
           Communicator &others, Products &products);

  /// This worker's own rows become factor := argmin |X_(n) - factor K^T|^2 + ridge |factor|^2, of least norm where K is
  /// too ill-conditioned; product := X_(n) K.
  kernels::SolveRecord update(int mode, const Replica &factors, Matrix product, double ridge);

  /// The caller has to say whenever a factor has been updated.
  void changed(int mode);

private:
  struct Decomposed {
    Columns q; // of stored rows
    Columns r;
    bool current = false;
    bool updated = false; // else rows without entries count, as the start has them
  };
  struct SmallSystem;

  void refresh(int mode, const Replica &factors);
  void decompose_shared(int mode, const Replica &factors);
  /// `mine`: rows here of a matrix that has all_rows of them on all processes. Gives those of Q.
  Columns decompose_together(ConstMatrix mine, i64 all_rows, Columns &r) const;
  SmallSystem system_for(int mode, double ridge) const;
  std::vector<double> solve_rows(const SmallSystem &system, const std::vector<double> &z, i64 rows) const;
  void stage_combinations(int mode, Range combinations);

  const tensor::Tensor &x_;
  const Ktensor &start_;
  const Worker &worker_;
  kernels::Backend &backend_;
  Communicator &others_;
  Products &products_;
  i64 rank_;
  std::vector<Decomposed> decomposed_; // [order]
  Replica staged_;                     // columns of the Q's, one combination a column
};

} // namespace td::solvers
