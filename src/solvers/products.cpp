#include "solvers/products.hpp"

#include <algorithm>

namespace td::solvers {

Products::Products(const tensor::Tensor &x, const Worker &worker, kernels::Backend &backend, i64 rank)
    : x_(x), worker_(worker), backend_(backend), rank_(rank), alone_(x, worker, backend),
      versions_(static_cast<std::size_t>(x.order()), 0) {
  i64 most = 0;
  for (int group = 0; group < x.groups().count() && x.sparse(); ++group)
    if (x.groups().shared(group))
      most = std::max(most, x.groups().cell_count(group));
  reserve(most);
}

// The memory has all rows, though only a deterministic run fills them: nothing is used of what is not written.
void Products::reserve(i64 most_cells) {
  if (most_cells > 0)
    memory_ = DeviceMatrix(backend_, most_cells, rank_, x_.type(), "a partial product of MTTKRP");
}

void Products::mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out, const plan::PartialProduct *product) {
  const int group = x_.groups().group_of(mode);
  if (x_.sparse() ? !x_.groups().shared(group) : product == nullptr) {
    alone_.mttkrp(mode, factors, out);
    return;
  }
  if (!is_current(x_.sparse() ? x_.groups().modes(group) : product->modes))
    compute_partial(group, product, factors);
  contract(group, product, mode, factors, out);
}

bool Products::is_current(const std::vector<int> &modes) const {
  if (modes != modes_)
    return false;
  for (std::size_t m = 0; m < versions_.size(); ++m)
    if (std::find(modes.begin(), modes.end(), static_cast<int>(m)) == modes.end() && versions_[m] != seen_[m])
      return false;
  return true;
}

void Products::compute_partial(int group, const plan::PartialProduct *product, std::span<const ConstMatrix> factors) {
  const plan::Groups &groups = x_.groups();
  modes_.clear();
  rows_ = product != nullptr ? product->cells : groups.cell_count(group);
  std::vector<ConstMatrix> outside;
  for (const int m : product != nullptr ? std::span<const int>(product->mode_at) : groups.mode_at(group))
    outside.push_back(m < 0 ? ConstMatrix() : factors[static_cast<std::size_t>(m)]);
  const Matrix rows = memory_.view(rows_);
  cells_ = product != nullptr ? worker_.partial_product(*product, outside, rows)
                              : worker_.partial_product(group, outside, rows);
  seen_ = versions_;
  modes_ = product != nullptr ? product->modes : groups.modes(group);
}

// Each worker adds up its own cells for all rows; or, where sums must not depend on the number of workers, all cells
// for its own rows.
void Products::contract(int group, const plan::PartialProduct *product, int mode, std::span<const ConstMatrix> factors,
                        Matrix out) {
  std::vector<ConstMatrix> inside;
  for (const int m : modes_)
    inside.push_back(factors[static_cast<std::size_t>(m)]);
  const auto place = static_cast<int>(std::find(modes_.begin(), modes_.end(), mode) - modes_.begin());

  if (!worker_.deterministic()) {
    compute_cells(group, product, {place, inside, out, {0, out.rows}, cells_, worker_.conflicts()});
    worker_.reduce(mode, out);
    return;
  }
  for (const Range &rows : worker_.own(mode))
    compute_cells(group, product, {place, inside, out, rows, cells_, worker_.conflicts()});
}

void Products::compute_cells(int group, const plan::PartialProduct *product, kernels::MttkrpArgs args) {
  const ConstMatrix rows = memory_.view(rows_);
  if (product != nullptr)
    return backend_.mttkrp_cells({product->dims, rows}, args);
  std::vector<ConstMatrix> factors(args.factors.begin(), args.factors.end());
  factors.push_back(rows);
  args.factors = factors;
  worker_.part().cells_mttkrp(group, args);
}

} // namespace td::solvers
