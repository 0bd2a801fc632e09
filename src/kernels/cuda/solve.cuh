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
    const double product = over_modes(gram, row * rank + column);
    return row == column ? product + ridge : product;
  }
  __device__ void write_scales(i64 r, const SolveScalesOut &out) const {
    const double product = over_modes(scales, r);
    out.right[r] = 1 / product;
    const double weight = weights != nullptr ? weights[r] : 0;
    out.before[r] = weight / own[r];
    out.solved[r] = isfinite(weight) && weight > 0 ? scalbn(1.0, solved_exponent(ilogb(weight))) : 1;
  }

private:
  /// The product of the modes' numbers at a place, in order. Those of four modes are asked for together.
  __device__ double over_modes(const double *const (&of)[max_order], i64 at) const {
    constexpr int together = 4;
    double product = 1;
    for (int first = 0; first < count; first += together) {
      double number[together];
#pragma unroll
      for (int m = 0; m < together; ++m)
        number[m] = first + m < count ? of[first + m][at] : 1;
#pragma unroll
      for (int m = 0; m < together; ++m)
        product *= number[m];
    }
    return product;
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
