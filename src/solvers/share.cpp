#include "solvers/share.hpp"

#include <algorithm>

namespace td::solvers {

void Share::mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out,
                   std::span<const double *const> exponents) const {
  part_.mttkrp(mode, {mode, factors, out, {0, out.rows}, {0, x_.facts().nnz}, conflicts(), false, exponents});
  if (sharding_.by_entries())
    return reduce(mode, out);
  if (sharding_.rows(mode).split.empty())
    return;
  Ranges own_split;
  for (const plan::SplitRow &row : sharding_.rows(mode).split)
    if (row.owner == others_.rank())
      own_split.push_back({row.row, row.row + 1});
  others_.reduce_rows(out, out, own_split);
}

Range Share::partial_product(int group, std::span<const ConstMatrix> outside, Matrix out) const {
  const tensor::Portion &portion = sharding_.cell_portion(group, others_.rank());
  part_.merged_mttkrp(group,
                      {x_.groups().merged_mode(group), outside, out, {0, out.rows}, {0, x_.facts().nnz}, conflicts()});
  if (deterministic()) {
    others_.allgather_rows(out, sharding_.cells(group).owned);
    return {0, out.rows};
  }
  Range cells{out.rows, 0};
  const auto include = [&](Range more) { cells = {std::min(cells.begin, more.begin), std::max(cells.end, more.end)}; };
  for (const Range &range : portion.whole)
    include(range);
  for (const tensor::Portion::Part &part : portion.parts)
    if (part.entries.size() > 0)
      include({part.row, part.row + 1});
  return cells.size() > 0 ? cells : Range{};
}

void Share::reduce(int mode, Matrix out) const { others_.reduce_rows(out, out, own(mode)); }

} // namespace td::solvers
