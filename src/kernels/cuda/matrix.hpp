// Kernels on factors and R x R matrices, as kernels.hpp declares them.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/kernels.hpp"

namespace td::kernels::cuda {

void gram(Device &device, ConstMatrix a, double *g);
void hadamard(Device &device, std::span<const double *const> grams, i64 rank, double ridge, double *v);
void factor_normal(Device &device, const double *v, i64 rank, double cutoff, double *f, SolveRecord *record);
void weights_from_norms(Device &device, NormKind kind, i64 rank, double *norms);
void multiply(Device &device, ConstMatrix m, const double *p, Matrix a);
void solve_normal(Device &device, const NormalEquations &equations, ConstMatrix m, const double *weights, Matrix a);
void column_norms(Device &device, ConstMatrix a, NormKind kind, double *out);
void divide_columns(Device &device, Matrix a, const double *d);
void gather_transposed(Device &device, ConstMatrix from, const i64 *rows, Matrix to);
void scatter_transposed(Device &device, ConstMatrix from, const i64 *rows, Matrix to);
void first_not_finite(Device &device, ConstMatrix a, i64 *at);
void to_f32(Device &device, ConstMatrix a, Matrix to, double *exponents);
void column_dots(Device &device, ConstMatrix a, ConstMatrix b, double *out);
void random_uniform(Device &device, Matrix a, u64 seed, int mode, i64 first_row);

} // namespace td::kernels::cuda
