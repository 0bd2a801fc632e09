#include "solvers/worker.hpp"

#include <algorithm>

#include "core/rows.hpp"

namespace td::solvers {

kernels::MttkrpArgs Worker::args(int mode, std::span<const ConstMatrix> factors, Matrix out,
                                 std::span<const double *const> exponents) const {
  return {mode,        factors, out,       {0, out.rows},      {0, x_.stored_entries()},
          conflicts(), false,   exponents, x_.settings().dense};
}

void Worker::mttkrp(int mode, std::span<const ConstMatrix> factors, Matrix out,
                    std::span<const double *const> exponents) const {
  if (part_.mttkrp(mode, args(mode, factors, out, exponents)) || x_.distribution() != nullptr)
    return reduce(mode, out);
  reduce_split(mode, out);
}

std::vector<Ranges> Worker::split_rows(int mode) const {
  std::vector<Ranges> split(static_cast<std::size_t>(others_.size()));
  for (const plan::SplitRow &row : sharding_.rows(mode).split)
    split[static_cast<std::size_t>(row.owner)].push_back({row.row, row.row + 1});
  return split;
}

void Worker::reduce_split(int mode, Matrix out) const {
  if (!sharding_.rows(mode).split.empty())
    others_.reduce_rows(out, out, split_rows(mode));
}

Range Worker::partial_product(int group, std::span<const ConstMatrix> outside, Matrix out) const {
  const Range cells = part_.merged_mttkrp(group, args(x_.groups().merged_mode(group), outside, out, {}));
  if (!deterministic() || part_.gathers())
    return cells;
  others_.allgather_rows(out, sharding_.cells(group).owned);
  return {0, out.rows};
}

Range Worker::partial_product(const plan::PartialProduct &product, std::span<const ConstMatrix> outside,
                              Matrix out) const {
  const Range cells = part_.partial_product(product, args(product.merged_mode, outside, out, {}));
  if (!deterministic() || part_.gathers())
    return cells;
  std::vector<Ranges> owned;
  for (int worker = 0; worker < sharding_.workers(); ++worker)
    owned.push_back({product.cells_of(worker, sharding_.workers())});
  others_.allgather_rows(out, owned);
  return {0, out.rows};
}

void Worker::reduce(int mode, Matrix out) const {
  if (rows_)
    return rows_->reduce(mode, out);
  others_.reduce_rows(out, out, owned(mode));
}

void Worker::gather(int mode, Matrix a) const {
  if (rows_)
    return rows_->gather(mode, a);
  others_.allgather_rows(a, owned(mode));
}

void Worker::gather(int mode, Matrix a, std::span<const Reduced> sums) const {
  if (rows_)
    return rows_->gather(mode, a, sums);
  others_.gather_and_reduce(a, owned(mode), sums);
}

std::vector<tensor::LoadPart> Worker::cut_load(int mode, const std::vector<std::vector<Ranges>> &chunks) const {
  std::vector<i64> before; // each chunk but the first
  i64 next = x_.stored_dims()[static_cast<std::size_t>(mode)];
  for (auto chunk = chunks.rbegin(); chunk + 1 != chunks.rend(); ++chunk) {
    const Ranges &own = (*chunk)[static_cast<std::size_t>(others_.rank())];
    next = own.empty() ? next : own.front().begin;
    before.insert(before.begin(), next);
  }
  return part_.cut_load(mode, before);
}

std::vector<std::vector<Ranges>> Worker::gather_chunks(int mode, plan::Overlap overlap, i64 row_bytes,
                                                       double ratio) const {
  if (rows_ || others_.size() == 1 || !others_.exchanges_beside())
    return {};
  i64 most = 0;
  for (const Ranges &ranges : owned(mode))
    most = std::max(most, rows_of(ranges));
  const plan::GatherChunks cut = plan::gather_chunks(overlap, most, row_bytes, ratio);
  std::vector<std::vector<Ranges>> chunks;
  for (int c = 0; c < cut.count && cut.count > 1; ++c) {
    std::vector<Ranges> &parts = chunks.emplace_back();
    for (const Ranges &ranges : owned(mode))
      parts.push_back(nth_rows(ranges, cut.of(rows_of(ranges), c)));
  }
  return chunks;
}

} // namespace td::solvers
