#include "solvers/products.hpp"

#include <algorithm>
#include <array>

namespace td::solvers {

Products::Products(const tensor::Tensor &x, const Worker &worker, kernels::Backend &backend, i64 rank)
    : x_(x), worker_(worker), backend_(backend), rank_(rank), alone_(x, worker, backend),
      versions_(static_cast<std::size_t>(x.order()), 0) {
  i64 most = 0;
  for (int group = 0; group < x.groups().count() && x.sparse(); ++group)
    if (x.groups().shared(group))
      most = std::max(most, x.groups().cell_count(group));
  memory_ = memory_of(most);
}

void Products::reserve(i64 most_cells) {
  if (most_cells > 0)
    memory_ = memory_of(most_cells);
}

// The memory has all rows, though only a deterministic run fills them: nothing is used of what is not written. Without
// entries there is none of them, but kernels ask for their length all the same.
DeviceMatrix Products::memory_of(i64 most_cells) const {
  return {backend_, most_cells, rank_, x_.type(), "a partial product of MTTKRP"};
}

void Products::mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out, const plan::PartialProduct *product,
                      const plan::PartialProduct *left) {
  const int group = x_.groups().group_of(mode);
  if (x_.sparse() ? !x_.groups().shared(group) : product == nullptr) {
    alone_.mttkrp(mode, factors, out);
    return;
  }
  if (left != nullptr && is_current(left_, left->modes))
    return contract(left_, group, left, mode, factors, out);
  if (!is_current(whole_, x_.sparse() ? x_.groups().modes(group) : product->modes))
    compute_partial(group, product, factors);
  if (left == nullptr)
    return contract(whole_, group, product, mode, factors, out);
  sum_over_mode(*product, *left, factors);
  contract(left_, group, left, mode, factors, out);
}

bool Products::is_current(const Held &held, const std::vector<int> &modes) const {
  if (modes != held.modes)
    return false;
  for (std::size_t m = 0; m < versions_.size(); ++m)
    if (std::find(modes.begin(), modes.end(), static_cast<int>(m)) == modes.end() && versions_[m] != held.seen[m])
      return false;
  return true;
}

void Products::compute_partial(int group, const plan::PartialProduct *product, std::span<const ConstMatrix> factors) {
  const plan::Groups &groups = x_.groups();
  whole_.modes.clear();
  left_.modes.clear(); // whose memory may now be others'
  whole_.rows = {0, product != nullptr ? product->cells : groups.cell_count(group)};
  std::vector<ConstMatrix> outside;
  for (const int m : product != nullptr ? std::span<const int>(product->mode_at) : groups.mode_at(group))
    outside.push_back(m < 0 ? ConstMatrix() : factors[static_cast<std::size_t>(m)]);
  const Matrix rows = memory_.view(whole_.rows.end);
  whole_.cells = product != nullptr ? worker_.partial_product(*product, outside, rows)
                                    : worker_.partial_product(group, outside, rows);
  whole_.seen = versions_;
  whole_.modes = product != nullptr ? product->modes : groups.modes(group);
}

// Each worker sums the cells that it has, so what is left are its sums of all rows: sums over workers come with what is
// computed from them.
void Products::sum_over_mode(const plan::PartialProduct &product, const plan::PartialProduct &left,
                             std::span<const ConstMatrix> factors) {
  left_.modes.clear();
  const auto dropped = static_cast<std::size_t>(
      std::mismatch(product.modes.begin(), product.modes.end() - 1, left.modes.begin()).first - product.modes.begin());
  const plan::SumOverMode sum(product, product.modes[dropped]);
  left_.rows = {whole_.rows.end, whole_.rows.end + left.cells};
  left_.cells = {0, left.cells};
  const Matrix out = memory_.view(left_.rows.end).slice(left_.rows.begin, left_.rows.end);
  std::array<ConstMatrix, 2> inside{out, out};
  inside[static_cast<std::size_t>(1 - sum.result)] = factors[static_cast<std::size_t>(product.modes[dropped])];
  backend_.mttkrp_cells({sum.dims, memory_.view(whole_.rows.end)},
                        {sum.result, inside, out, {0, out.rows}, whole_.cells, worker_.conflicts()});
  left_.seen = versions_;
  left_.modes = left.modes;
}

// Each worker adds up its own cells for all rows; or, where sums must not depend on the number of workers, all cells
// for its own rows.
void Products::contract(const Held &held, int group, const plan::PartialProduct *product, int mode,
                        std::span<const ConstMatrix> factors, Matrix out) {
  std::vector<ConstMatrix> inside;
  for (const int m : held.modes)
    inside.push_back(factors[static_cast<std::size_t>(m)]);
  const auto place = static_cast<int>(std::find(held.modes.begin(), held.modes.end(), mode) - held.modes.begin());

  if (!worker_.deterministic()) {
    compute_cells(held, group, product, {place, inside, out, {0, out.rows}, held.cells, worker_.conflicts()});
    worker_.reduce(mode, out);
    return;
  }
  for (const Range &rows : worker_.own(mode))
    compute_cells(held, group, product, {place, inside, out, rows, held.cells, worker_.conflicts()});
}

void Products::compute_cells(const Held &held, int group, const plan::PartialProduct *product,
                             kernels::MttkrpArgs args) {
  const ConstMatrix rows = memory_.view(held.rows.end).slice(held.rows.begin, held.rows.end);
  if (product != nullptr)
    return backend_.mttkrp_cells({product->dims, rows}, args);
  std::vector<ConstMatrix> factors(args.factors.begin(), args.factors.end());
  factors.push_back(rows);
  args.factors = factors;
  worker_.part().cells_mttkrp(group, args);
}

} // namespace td::solvers
