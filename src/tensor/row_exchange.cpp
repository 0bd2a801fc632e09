#include "tensor/row_exchange.hpp"

#include <algorithm>

namespace td::tensor {

namespace {

std::vector<i64> times(std::span<const i64> rows, i64 row_bytes) {
  std::vector<i64> bytes(rows.size());
  std::transform(rows.begin(), rows.end(), bytes.begin(), [&](i64 count) { return count * row_bytes; });
  return bytes;
}

i64 own_rows(const Distribution &rows, int mode) { return rows.own(mode).empty() ? 0 : rows.own(mode).front().size(); }

} // namespace

RowExchange::RowExchange(const Distribution &rows, kernels::Backend &backend, Communicator &others)
    : rows_(rows), backend_(backend), others_(others) {
  if (backend.memory() == nullptr)
    return;
  for (int m = 0; m < static_cast<int>(rows.dims().size()); ++m) {
    const std::span<const i64> list = rows.shared_rows(m);
    const auto bytes = static_cast<i64>(list.size_bytes());
    lists_.emplace_back(backend, bytes, "lists of rows for other processes");
    if (bytes > 0)
      backend.upload(lists_.back().data(), list.data(), bytes);
  }
}

const i64 *RowExchange::shared_rows(int mode) const {
  if (lists_.empty())
    return rows_.shared_rows(mode).data();
  return static_cast<const i64 *>(lists_[static_cast<std::size_t>(mode)].data());
}

void RowExchange::reduce(int mode, Matrix a) const {
  const i64 row_bytes = a.cols * size_of(a.type);
  const i64 coming = rows_.shared(mode);
  const kernels::DeviceBuffer received(backend_, coming * row_bytes, "rows on their way between processes");
  others_.all_to_all(a.slice(own_rows(rows_, mode), a.rows).data, times(rows_.lent_to(mode), row_bytes),
                     received.data(), times(rows_.shared_with(mode), row_bytes));
  const ConstMatrix sums(received.data(), a.type, coming, a.cols, a.cols);
  i64 before = 0;
  for (const i64 count : rows_.shared_with(mode)) { // rows of one process are different ones
    if (count > 0)
      backend_.add_rows(sums.slice(before, before + count), shared_rows(mode) + before, a);
    before += count;
  }
}

void RowExchange::gather(int mode, Matrix a) const {
  const i64 row_bytes = a.cols * size_of(a.type);
  const i64 going = rows_.shared(mode);
  const kernels::DeviceBuffer sent(backend_, going * row_bytes, "rows on their way between processes");
  if (going > 0)
    backend_.gather_rows(a, shared_rows(mode), {sent.data(), a.type, going, a.cols, a.cols});
  others_.all_to_all(sent.data(), times(rows_.shared_with(mode), row_bytes),
                     a.slice(own_rows(rows_, mode), a.rows).data, times(rows_.lent_to(mode), row_bytes));
}

void RowExchange::collect(int mode, ConstMatrix held, Matrix all) const {
  if (backend_.memory() == nullptr)
    return rows_.collect(mode, held, all);
  const i64 own = own_rows(rows_, mode);
  Buffer<std::byte> here(own * held.cols * size_of(held.type), "rows of a model on their way");
  if (own > 0)
    backend_.download(here.data(), held.data, here.size());
  rows_.collect(mode, {here.data(), held.type, own, held.cols, held.cols}, all);
}

} // namespace td::tensor
