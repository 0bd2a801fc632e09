// Kernels on factors and R x R matrices, as kernels.hpp declares them.
#pragma once

#include "kernels/cuda/gpu.hpp"
#include "kernels/kernels.hpp"

namespace td::kernels::cuda {

void gram(Gpu &device, ConstMatrix a, double *g);
void hadamard(Gpu &device, std::span<const double *const> grams, i64 rank, double ridge, double *v);
void factor_normal(Gpu &device, const double *v, i64 rank, double cutoff, double *f, SolveRecord *record);
void weights_from_norms(Gpu &device, NormKind kind, i64 rank, double *norms);
void multiply(Gpu &device, ConstMatrix m, const double *p, Matrix a);
void solve_normal(Gpu &device, const NormalEquations &equations, ConstMatrix m, const double *weights, Matrix a);
void column_norms(Gpu &device, ConstMatrix a, NormKind kind, double *out);
void divide_columns(Gpu &device, Matrix a, const double *d);
void gather_transposed(Gpu &device, ConstMatrix from, const i64 *rows, Matrix to);
void scatter_transposed(Gpu &device, ConstMatrix from, const i64 *rows, Matrix to);
void first_not_finite(Gpu &device, ConstMatrix a, i64 *at);
void to_f32(Gpu &device, ConstMatrix a, Matrix to, double *exponents);
void column_dots(Gpu &device, ConstMatrix a, ConstMatrix b, double *out);
void random_uniform(Gpu &device, Matrix a, u64 seed, int mode, i64 first_row);

} // namespace td::kernels::cuda
