// What the backends that work in host memory share: memory, and the R x R matrices.
#pragma once

#include "kernels/backend.hpp"

namespace td::kernels::host {

class HostBackend : public Backend {
public:
  void *allocate(i64 bytes, const char *what) override;
  void release(void *memory) noexcept override;
  void upload(void *to, const void *from_host, i64 bytes) override;
  void download(void *to_host, const void *from, i64 bytes) override;
  void to_f32(ConstMatrix a, Matrix to, double *exponents) override;
  void gather_transposed(ConstMatrix from, const i64 *rows, Matrix to) override;
  void scatter_transposed(ConstMatrix from, const i64 *rows, Matrix to) override;
  void gather_rows(ConstMatrix from, const i64 *rows, Matrix to) override;
  void add_rows(ConstMatrix from, const i64 *rows, Matrix to) override;
  void set_zero(Matrix a) override;
  void first_not_finite(ConstMatrix a, i64 *at) override;
  void hadamard(std::span<const double *const> grams, i64 rank, double ridge, double *v) override;
  void factor_normal(const double *v, i64 rank, double cutoff, double *f, SolveRecord *record) override;
  void solve_scales(const SolveColumns &columns, const SolveScalesOut &out) override;
  void weights_from_norms(NormKind kind, i64 rank, double *norms) override;
  void finish_columns(i64 rank, const double *solved, const double *largest, double *weights, double *scales,
                      double *gram) override;
  void combine_rows(ConstMatrix parts, Combine how, void *out) override;

  bool reach(Device &) override { return true; }
  void copy_from(Device &other, void *to, const void *from, i64 bytes) override;
};

} // namespace td::kernels::host
