#include "tensor/selection.hpp"

#include <algorithm>

namespace td::tensor {

namespace {

void fill_lists(const kernels::SortedView &x, const Selection &some, bool rows, SelectedLists &lists) {
  if (lists.tile_begin.size() == 0) {
    lists.tile_begin = Buffer<i64>(x.tiles + 1, "tile boundaries of a worker's part");
    for (i64 tile = 0; tile <= x.tiles; ++tile)
      lists.tile_begin[tile] = some.lists.before(x.tile_begin[tile]);
    lists.tile_light = Buffer<i64>(x.tiles > 1 ? x.tiles : 0, "light rows of a worker's part");
    for (i64 tile = 0; tile < lists.tile_light.size(); ++tile)
      lists.tile_light[tile] = some.lists.before(x.tile_light[tile]);
  }
  if (!rows || lists.row_begin.size() > 0)
    return;
  lists.row_index = Buffer<i64>(some.lists.count(), "row indices of a worker's part");
  lists.row_begin = Buffer<i64>(some.lists.count() + 1, "row boundaries of a worker's part");
  i64 next = 0;
  some.lists.each({0, some.lists.count()}, [&](Range slots) {
    for (i64 row = slots.begin; row < slots.end; ++row) {
      lists.row_index[next] = x.row_index[row];
      lists.row_begin[next++] = some.entries.before(x.row_begin[row]);
    }
  });
  lists.row_begin[next] = some.entries.count();
}

void fill_lists(const kernels::BlcoView &x, const Selection &some, bool, SelectedLists &lists) {
  if (lists.block_begin.size() > 0)
    return;
  lists.block_begin = Buffer<i64>(some.lists.count() + 1, "block boundaries of a worker's part");
  for (i64 block = 0; block <= some.lists.count(); ++block)
    lists.block_begin[block] = some.entries.before(x.block_begin[some.lists.first() + block]);
}

template <class View> void fill_lists(const View &, const Selection &, bool, SelectedLists &) {}

// Which rows are heavy, and how threads share the rows and tiles, is read by kernels in host memory alone, where there
// are no parts; it holds for a part's rows as well.
void select(kernels::SortedView &x, const Selection &some, const SelectedLists &lists) {
  x.nnz = some.entries.count();
  x.rows = some.lists.count();
  x.row_index = lists.row_index.data();
  x.row_begin = lists.row_begin.data();
  x.tile_begin = lists.tile_begin.data();
  x.tile_light = lists.tile_light.data();
}

void select(kernels::BlcoView &x, const Selection &some, const SelectedLists &lists) {
  x.nnz = some.entries.count();
  x.blocks = some.lists.count();
  x.block_begin = lists.block_begin.data();
  if (x.block_base != nullptr)
    x.block_base += some.lists.first() * std::ssize(x.dims);
}

void select(kernels::CooView &x, const Selection &some, const SelectedLists &) { x.nnz = some.entries.count(); }

void select(kernels::DenseView &x, const Selection &some, const SelectedLists &) { x.dims = some.dims; }

} // namespace

void Chosen::add(Range more) {
  if (more.size() == 0)
    return;
  if (!ranges_.empty() && ranges_.back().end == more.begin) {
    ranges_.back().end = more.end;
  } else {
    ranges_.push_back(more);
    before_.push_back(count_);
  }
  count_ += more.size();
}

i64 Chosen::before(i64 at) const noexcept {
  const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), at,
                                     [](i64 number, const Range &range) { return number < range.begin; });
  if (next == ranges_.begin())
    return 0;
  const auto k = static_cast<std::size_t>(next - ranges_.begin()) - 1;
  return before_[k] + std::min(at - ranges_[k].begin, ranges_[k].size());
}

std::size_t Chosen::range_with(i64 number) const noexcept {
  const auto next = std::upper_bound(before_.begin(), before_.end(), number);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(next - before_.begin(), 1)) - 1;
}

void fill_lists(const kernels::TensorView &whole, const Selection &some, bool rows, SelectedLists &lists) {
  std::visit([&](const auto &x) { fill_lists(x, some, rows, lists); }, whole);
}

kernels::TensorView view_of(const kernels::TensorView &whole, const Selection &some, const SelectedLists &lists) {
  kernels::TensorView view = whole;
  std::visit([&](auto &x) { select(x, some, lists); }, view);
  return view;
}

} // namespace td::tensor
