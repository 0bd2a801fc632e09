// The CPU backend: threads and SIMD on host memory.
#pragma once

#include <memory>

#include "kernels/host/host_backend.hpp"

namespace td::kernels::cpu {

/// a[i, r] /= divisor[r] for i in rows.
void divide_rows(const Matrix &a, Range rows, const double *divisor);
/// largest[r] := the largest magnitude of column r of these rows, but not below what it was.
void raise_to_magnitudes(const ConstMatrix &a, Range rows, double *largest);
/// sum[r] grows by the products of column r of a and b in these rows.
void add_dots(const ConstMatrix &a, const ConstMatrix &b, Range rows, double *sum);

class CpuBackend : public host::HostBackend {
public:
  explicit CpuBackend(int threads) : threads_(threads < 1 ? 1 : threads) {}

  std::string describe() const override;
  int threads() const noexcept override { return threads_; }

  void mttkrp(const TensorView &x, const MttkrpArgs &args) override;
  void mttkrp_cells(const CellsView &x, const MttkrpArgs &args) override;
  void mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out) override;
  Rates rates() const override;
  Rates nominal_rates() const override;
  Prediction predict_mttkrp(const TensorView &x, const MttkrpArgs &args, const Rates &rates) const override;
  Prediction predict_mttkrp_cells(const CellsView &x, const MttkrpArgs &args, const Rates &rates) const override;
  Prediction predict_mttkrp_slabs(const DenseView &x, i64 rank, const Rates &rates) const override;
  Prediction predict_update(i64 rows, i64 rank, ValueType type, const Rates &rates) const override;
  void unfolding_normal(const TensorView &x, int mode, ConstMatrix omega, Matrix y, bool add) override;
  void gram(ConstMatrix a, double *g) override;
  void multiply(ConstMatrix m, const double *p, Matrix a) override;
  void solve_normal(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a) override;
  void solve_and_sum(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a,
                     const ColumnSums &sums) override;
  void column_norms(ConstMatrix a, NormKind kind, double *out) override;
  void divide_columns(Matrix a, const double *d) override;
  void divide_and_gram(Matrix a, const double *d, double *g) override;
  void column_dots(ConstMatrix a, ConstMatrix b, double *out) override;
  void random_uniform(Matrix a, u64 seed, int mode, i64 first_row) override;
  void compare(const TensorView &x, const double *weights, std::span<const ConstMatrix> factors, Range entries,
               double *out) override;

private:
  int threads_;
};

inline std::shared_ptr<Backend> make_backend(int threads) { return std::make_shared<CpuBackend>(threads); }

} // namespace td::kernels::cpu
