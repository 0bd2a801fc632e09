#include "kernels/backend.hpp"

#include "core/checked.hpp"
#include "core/error.hpp"
#include "kernels/building.hpp"

namespace td::kernels {

i64 entries_of(const TensorView &x) {
  return std::visit(
      [](const auto &view) {
        if constexpr (requires { view.nnz; })
          return view.nnz;
        else
          return checked_product(view.dims).value(); // a dense tensor with more elements cannot be built
      },
      x);
}

std::string failure_text(const SolveRecord &record, i64 rank) {
  switch (record.failure) {
  case SolveFailure::not_finite:
    return fmt::format("the normal-equation matrix has the value {} at ({}, {})", record.value, record.at / rank,
                       record.at % rank);
  case SolveFailure::no_convergence:
    return fmt::format("the eigen-decomposition of the {} x {} normal equations did not converge", rank, rank);
  case SolveFailure::none:
    break;
  }
  return {};
}

void Kernels::mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out) {
  const std::size_t last = x.dims.size() - 1;
  const DenseView all{x.dims.first(last), x.type, nullptr};
  const i64 elements = entries_of(all);
  for (i64 q = 0; q < x.dims[last]; ++q) {
    const DenseView slab{all.dims, x.type, static_cast<const char *>(x.values) + q * elements * size_of(x.type)};
    const Matrix rows = out.slice(q * x.dims[0], (q + 1) * x.dims[0]);
    mttkrp(slab, {0, factors.first(last), rows, {0, rows.rows}, {0, elements}});
  }
}

void Kernels::prepare_solve(const SolveColumns &columns, double ridge, double cutoff, const PreparedSolve &out) {
  hadamard(columns.grams, columns.rank, ridge, out.v);
  factor_normal(out.v, columns.rank, cutoff, out.f, out.record);
  solve_scales(columns, out.scales);
}

void Kernels::solve_and_sum(const NormalEquations &equations, ConstMatrix m, const SolveScales &scales, Matrix a,
                            const ColumnSums &sums) {
  solve_normal(equations, m, scales, a);
  gram(a, sums.gram);
  column_norms(a, NormKind::max, sums.largest);
  if (sums.inner != nullptr)
    column_dots(m, a, sums.inner);
  if (sums.weights != nullptr)
    finish_columns(equations.rank, scales.solved, sums.largest, sums.weights, sums.scales, sums.gram);
}

std::unique_ptr<DeviceBuilding> Backend::begin_building(const EntriesView &, bool, const KeyMoves *) { return nullptr; }

std::shared_ptr<const DeviceArrays> Backend::lend(const DenseView &, std::string_view) {
  throw_error(Status::internal, "a backend that works in host memory is lent nothing");
}

void Backend::sum_elements(const DenseView &, double, i64, ElementSums *) {
  throw_error(Status::internal, "elements in host memory are summed by the host");
}

void Backend::find_rows(const i64 *row_index, const i64 *row_begin, std::span<const RowQuery> wanted,
                        std::span<RowPlace> found) {
  for (std::size_t k = 0; k < wanted.size(); ++k)
    found[k] = find_row(row_index, row_begin, wanted[k]);
}

} // namespace td::kernels
