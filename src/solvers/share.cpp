#include "solvers/share.hpp"

namespace td::solvers {

Share::Share(const plan::Tensor &x, int worker, int workers, bool deterministic)
    : x_(x), worker_(worker), workers_(workers), deterministic_(deterministic),
      by_rows_(workers == 1 || deterministic || x.divided_by_rows()) {
  for (int m = 0; m < x.order(); ++m) {
    const std::vector<i64> boundary = x.row_boundaries(m, workers);
    auto &ranges = owned_.emplace_back();
    for (std::size_t k = 0; k + 1 < boundary.size(); ++k)
      ranges.push_back({boundary[k], boundary[k + 1]});
  }
}

std::vector<Range> Share::cells(int group) const {
  std::vector<Range> ranges;
  for (int worker = 0; worker < workers_; ++worker)
    ranges.push_back(part_of({0, x_.groups().cell_count(group)}, worker, workers_));
  return ranges;
}

void Share::mttkrp(kernels::Backend &backend, Communicator &others, int mode, std::span<const ConstMatrix> factors,
                   Matrix out) const {
  const Range all_entries{0, x_.facts().nnz};
  kernels::MttkrpArgs args{mode, factors, out, own(mode), all_entries, deterministic_};
  if (by_rows_) {
    backend.mttkrp(x_.view(mode), args);
    return;
  }
  args.rows = {0, out.rows};
  args.entries = part_of(all_entries, worker_, workers_);
  backend.mttkrp(x_.view(mode), args);
  others.reduce_rows(out, out, own(mode));
}

} // namespace td::solvers
