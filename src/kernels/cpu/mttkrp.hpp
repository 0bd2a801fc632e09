// MTTKRP of each format.
#pragma once

#include "kernels/kernels.hpp"

namespace td::kernels::cpu {

void mttkrp(const CooView &x, const MttkrpArgs &args, int threads);
void mttkrp(const BlcoView &x, const MttkrpArgs &args, int threads);
void mttkrp(const SortedView &x, const MttkrpArgs &args, int threads);
void mttkrp(const DenseView &x, const MttkrpArgs &args, int threads);
void mttkrp_slabs(const DenseView &x, std::span<const ConstMatrix> factors, Matrix out, int threads);
void mttkrp_cells(const CellsView &x, const MttkrpArgs &args, int threads);

/// out[i, :] := 0 for i in rows.
void zero_rows(Matrix out, Range rows);

} // namespace td::kernels::cpu
