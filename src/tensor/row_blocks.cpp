#include "tensor/row_blocks.hpp"

#include <cstring>

namespace td::tensor {

namespace {

i64 bytes_of(const ConstMatrix &a) { return a.rows * a.cols * size_of(a.type); }

/// What goes to, or comes from, one process.
std::vector<i64> with(const Processes &processes, int process, i64 bytes) {
  std::vector<i64> counts(static_cast<std::size_t>(processes.size()));
  counts[static_cast<std::size_t>(process)] = bytes;
  return counts;
}

/// Bytes of the rows of each process's block of a matrix.
std::vector<i64> block_bytes(const Processes &processes, i64 rows, i64 row_bytes) {
  std::vector<i64> bytes;
  for (int p = 0; p < processes.size(); ++p)
    bytes.push_back(block_of(processes, p).of(rows).size() * row_bytes);
  return bytes;
}

} // namespace

Meeting meeting_of(Processes &processes) {
  return {[&processes](std::span<double> data) { processes.all_reduce(data, Reduction::sum); },
          [&processes](std::span<double> data) { processes.all_reduce(data, Reduction::max); }};
}

void deal_rows(Processes &processes, ConstMatrix whole, Matrix block) {
  std::vector<i64> sent(static_cast<std::size_t>(processes.size()));
  if (processes.rank() == 0)
    sent = block_bytes(processes, whole.rows, whole.cols * size_of(whole.type));
  processes.all_to_all(whole.data, sent, block.data, with(processes, 0, bytes_of(block)));
}

Ktensor deal(Processes &processes, const Ktensor &whole) {
  Ktensor block(whole.dims(), whole.rank(), whole.type(), {}, block_of(processes));
  for (int m = 0; m < whole.order(); ++m)
    deal_rows(processes, whole.factor(m), block.factor(m));
  std::copy(whole.weights().begin(), whole.weights().end(), block.weights().begin());
  processes.broadcast(block.weights().data(), block.rank() * i64{sizeof(double)});
  block.labels() = whole.labels();
  return block;
}

void share_rows(Processes &processes, Matrix all) {
  const Range mine = block_of(processes).of(all.rows);
  const ConstMatrix block = all.slice(mine.begin, mine.end);
  const bool first = processes.rank() == 0; // whose rows are where they belong
  std::vector<i64> received(static_cast<std::size_t>(processes.size()));
  if (first) {
    received = block_bytes(processes, all.rows, all.cols * size_of(all.type));
    received.front() = 0;
  }
  processes.all_to_all(block.data, with(processes, 0, first ? 0 : bytes_of(block)),
                       all.slice(first ? mine.end : 0, all.rows).data, received);
  processes.broadcast(all.data, bytes_of(all));
}

Ktensor gather(Processes &processes, const Ktensor &block, const MemoryBudget &budget) {
  Ktensor whole(block.dims(), block.rank(), block.type(), budget);
  for (int m = 0; m < block.order(); ++m) {
    const Range mine = block.rows(m);
    const Matrix all = whole.factor(m);
    if (mine.size() > 0)
      std::memcpy(all.slice(mine.begin, mine.end).data, block.factor(m).data,
                  static_cast<std::size_t>(bytes_of(block.factor(m))));
    share_rows(processes, all);
  }
  std::copy(block.weights().begin(), block.weights().end(), whole.weights().begin());
  whole.labels() = block.labels();
  return whole;
}

void bring_rows(Processes &processes, ConstMatrix block, int from, Matrix to) {
  const bool sends = processes.rank() == from, receives = processes.rank() == 0;
  processes.all_to_all(block.data, with(processes, 0, sends ? bytes_of(block) : 0), to.data,
                       with(processes, from, receives ? bytes_of(to) : 0));
}

} // namespace td::tensor
