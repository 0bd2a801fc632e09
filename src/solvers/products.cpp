#include "solvers/products.hpp"

#include <algorithm>

namespace td::solvers {

Products::Products(const tensor::Tensor &x, const Worker &worker, kernels::Backend &backend, i64 rank)
    : x_(x), worker_(worker), rank_(rank), alone_(x, worker, backend),
      versions_(static_cast<std::size_t>(x.order()), 0) {
  i64 most = 0;
  for (int group = 0; group < x.groups().count(); ++group)
    if (x.groups().shared(group, rank))
      most = std::max(most, x.groups().cell_count(group));
  // The memory has all rows, though only a deterministic run fills them: nothing is used of what is not written.
  if (most > 0)
    memory_ = DeviceMatrix(backend, most, rank, x.type(), "a partial product of MTTKRP");
}

void Products::mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out) {
  const int group = x_.groups().group_of(mode);
  if (!x_.groups().shared(group, rank_)) {
    alone_.mttkrp(mode, factors, out);
    return;
  }
  if (!is_current(group))
    compute_partial(group, factors);
  contract(group, mode, factors, out);
}

bool Products::is_current(int group) const {
  if (group != group_)
    return false;
  for (std::size_t m = 0; m < versions_.size(); ++m)
    if (x_.groups().group_of(static_cast<int>(m)) != group && versions_[m] != seen_[m])
      return false;
  return true;
}

void Products::compute_partial(int group, std::span<const ConstMatrix> factors) {
  const plan::Groups &groups = x_.groups();
  group_ = -1;
  std::vector<ConstMatrix> outside;
  for (const int m : groups.mode_at(group))
    outside.push_back(m < 0 ? ConstMatrix() : factors[static_cast<std::size_t>(m)]);
  cells_ = worker_.partial_product(group, outside, memory_.view(groups.cell_count(group)));
  seen_ = versions_;
  group_ = group;
}

// Each worker adds up its own cells for all rows; or, where sums must not depend on the number of workers, all cells
// for its own rows.
void Products::contract(int group, int mode, std::span<const ConstMatrix> factors, Matrix out) {
  const plan::Groups &groups = x_.groups();
  const plan::Group &modes = groups.modes(group);
  std::vector<ConstMatrix> inside;
  for (const int m : modes)
    inside.push_back(factors[static_cast<std::size_t>(m)]);
  inside.push_back(memory_.view(groups.cell_count(group)));
  const auto place = static_cast<int>(std::find(modes.begin(), modes.end(), mode) - modes.begin());

  if (!worker_.deterministic()) {
    worker_.part().cells_mttkrp(group, {place, inside, out, {0, out.rows}, cells_, worker_.conflicts()});
    worker_.reduce(mode, out);
    return;
  }
  for (const Range &rows : worker_.own(mode))
    worker_.part().cells_mttkrp(group, {place, inside, out, rows, cells_, worker_.conflicts()});
}

} // namespace td::solvers
