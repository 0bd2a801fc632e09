// The reference backend: each function is its definition, serial and in f64, rounded once when stored.
#pragma once

#include <memory>

#include "kernels/host/host_backend.hpp"

namespace td::kernels::reference {

class ReferenceBackend : public host::HostBackend {
public:
  std::string describe() const override { return "reference, 1 thread"; }
  int threads() const noexcept override { return 1; }

  void mttkrp(const TensorView &x, const MttkrpArgs &args) override;
  void mttkrp_cells(const CellsView &x, const MttkrpArgs &args) override;
  Prediction predict_mttkrp(const TensorView &, const MttkrpArgs &, const Rates &) const override {
    return {"serial, as the formula reads", "one thread", 0, 0};
  }
  Prediction predict_mttkrp_cells(const CellsView &, const MttkrpArgs &, const Rates &) const override {
    return {"serial, as the formula reads", "one thread", 0, 0};
  }
  void unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) override;
  void gram(ConstMatrix a, double *g) override;
  void multiply(ConstMatrix m, const double *p, Matrix a) override;
  void solve_normal(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a) override;
  void column_norms(ConstMatrix a, NormKind kind, double *out) override;
  void divide_columns(Matrix a, const double *d) override;
  void column_dots(ConstMatrix a, ConstMatrix b, double *out) override;
  void random_uniform(Matrix a, u64 seed, int mode, i64 first_row) override;
  void compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
               double *out) override;
};

inline std::shared_ptr<Backend> make_backend() { return std::make_shared<ReferenceBackend>(); }

} // namespace td::kernels::reference
