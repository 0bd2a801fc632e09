// The solve of a factor's normal equations: what its files share.
#pragma once

#include "kernels/cuda/launch.cuh"

namespace td::kernels::cuda {

/// What a solve takes of the other modes, for kernels.
struct SolveInput {
  const double *gram[max_order];
  const double *scales[max_order];
  int count;
  const double *own;
  const double *weights; // or null
  i64 rank;
  double ridge;

  explicit SolveInput(std::span<const double *const> grams, i64 columns, double on_diagonal = 0)
      : gram{}, scales{}, count(static_cast<int>(grams.size())), own(nullptr), weights(nullptr), rank(columns),
        ridge(on_diagonal) {
    std::copy(grams.begin(), grams.end(), gram);
  }
  SolveInput(const SolveColumns &columns, double on_diagonal) : SolveInput(columns.grams, columns.rank, on_diagonal) {
    std::copy(columns.scales.begin(), columns.scales.end(), scales);
    own = columns.own;
    weights = columns.weights;
  }

  /// An entry of the normal equations.
  __device__ double normal(i64 row, i64 column) const {
    const i64 at[] = {row * rank + column};
    double product[1];
    over_modes(gram, at, product);
    return row == column ? product[0] + ridge : product[0];
  }
  /// Some of them, without the ridge, by where they are.
  template <int Count> __device__ void products(const i64 (&at)[Count], double (&product)[Count]) const {
    over_modes(gram, at, product);
  }
  __device__ void write_scales(i64 r, const SolveScalesOut &out) const {
    const i64 at[] = {r};
    double product[1];
    over_modes(scales, at, product);
    out.right[r] = 1 / product[0];
    const double weight = weights != nullptr ? weights[r] : 0;
    out.before[r] = weight / own[r];
    out.solved[r] = isfinite(weight) && weight > 0 ? scalbn(1.0, solved_exponent(ilogb(weight))) : 1;
  }

private:
  /// The products of the modes' numbers at some places, in the order of modes. Those of four modes are asked for
  /// together: one by one each would take as long as all.
  template <int Count>
  __device__ void over_modes(const double *const (&of)[max_order], const i64 (&at)[Count],
                             double (&product)[Count]) const {
    constexpr int together = 4;
    for (double &p : product)
      p = 1;
    for (int first = 0; first < count; first += together) {
      double number[together][Count];
#pragma unroll
      for (int m = 0; m < together; ++m)
#pragma unroll
        for (int k = 0; k < Count; ++k)
          number[m][k] = first + m < count ? of[first + m][at[k]] : 1;
#pragma unroll
      for (int m = 0; m < together; ++m)
#pragma unroll
        for (int k = 0; k < Count; ++k)
          product[k] *= number[m][k];
    }
  }
};

/// What a column comes to.
struct Finished {
  double weight, scale;
  __device__ Finished(double largest, double solved) : weight(largest / solved) {
    if (weight != 0 && weight < 1) // a NaN stays
      weight = 1;
    scale = weight == 0 ? 1 : weight * solved;
  }
};

/// Does what factor_normal does, for rank <= small_rank.
void factor_small(Gpu &device, const double *v, i64 rank, double cutoff, double *f, SolveRecord *record);
/// Does what prepare_solve does, for such a rank.
void prepare_small(Gpu &device, const SolveInput &in, double cutoff, const PreparedSolve &out);

/// Do what solve_normal, gram and solve_and_sum do, for up to mma_tile columns.
void solve_narrow(Gpu &device, const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a);
void gram_narrow(Gpu &device, ConstMatrix a, double *g);
void solve_and_sum_narrow(Gpu &device, const NormalEquations &equations, ConstMatrix m, const SolveScales &scales,
                          Matrix a, const ColumnSums &sums);

} // namespace td::kernels::cuda
