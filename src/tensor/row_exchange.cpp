#include "tensor/row_exchange.hpp"

#include <algorithm>

namespace td::tensor {

namespace {

/// Rows that lie together go to, or come from, one process after the other.
kernels::Transfers transfers(const void *memory, std::span<const i64> rows, i64 row_bytes) {
  kernels::Transfers all;
  auto *at = static_cast<std::byte *>(const_cast<void *>(memory));
  for (std::size_t process = 0; process < rows.size(); at += rows[process++] * row_bytes)
    if (rows[process] > 0)
      all.push_back({static_cast<int>(process), at, rows[process] * row_bytes});
  return all;
}

i64 own_rows(const Distribution &rows, int mode) { return rows.own(mode).empty() ? 0 : rows.own(mode).front().size(); }

/// Room on the host for rows of a device.
struct Staged {
  explicit Staged(const ConstMatrix &a)
      : room(a.rows * a.cols * size_of(a.type), "rows of a model on their way"), rows{room.data(), a.type, a.rows,
                                                                                      a.cols, a.cols} {}
  Buffer<std::byte> room;
  Matrix rows;
};

} // namespace

RowExchange::RowExchange(const Distribution &rows, kernels::Backend &backend, Communicator &others)
    : rows_(rows), backend_(backend), others_(others) {
  if (!backend.has_own_memory())
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
  others_.exchange(transfers(a.slice(own_rows(rows_, mode), a.rows).data, rows_.lent_to(mode), row_bytes),
                   transfers(received.data(), rows_.shared_with(mode), row_bytes));
  const ConstMatrix sums(received.data(), a.type, coming, a.cols, a.cols);
  i64 before = 0;
  for (const i64 count : rows_.shared_with(mode)) { // rows of one process are different ones
    if (count > 0)
      backend_.add_rows(sums.slice(before, before + count), shared_rows(mode) + before, a);
    before += count;
  }
}

void RowExchange::gather(int mode, Matrix a, std::span<const Reduced> sums) const {
  const i64 row_bytes = a.cols * size_of(a.type);
  const i64 going = rows_.shared(mode);
  const kernels::DeviceBuffer sent(backend_, going * row_bytes, "rows on their way between processes");
  if (going > 0)
    backend_.gather_rows(a, shared_rows(mode), {sent.data(), a.type, going, a.cols, a.cols});
  others_.exchange_and_reduce(transfers(sent.data(), rows_.shared_with(mode), row_bytes),
                              transfers(a.slice(own_rows(rows_, mode), a.rows).data, rows_.lent_to(mode), row_bytes),
                              sums);
}

void RowExchange::settle(int mode, ConstMatrix held, Matrix block) const {
  const ConstMatrix own = held.slice(0, own_rows(rows_, mode));
  if (!backend_.has_own_memory())
    return rows_.settle(mode, own, block);
  const Staged here(own);
  if (own.rows > 0)
    backend_.download(here.rows.data, own.data, here.room.size());
  rows_.settle(mode, here.rows, block);
}

void RowExchange::fetch(int mode, ConstMatrix block, Matrix held) const {
  const Matrix own = held.slice(0, own_rows(rows_, mode));
  if (!backend_.has_own_memory()) {
    rows_.fetch(mode, block, own);
  } else {
    const Staged here(own);
    rows_.fetch(mode, block, here.rows);
    if (own.rows > 0)
      backend_.upload(own.data, here.rows.data, here.room.size());
  }
  gather(mode, held);
}

} // namespace td::tensor
