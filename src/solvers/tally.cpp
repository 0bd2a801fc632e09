#include "solvers/tally.hpp"

namespace td::solvers {

namespace {

constexpr const char *what = "the numbers of an iteration";

i64 bytes_of(i64 solves, i64 order, i64 rank) {
  const auto sums = checked_multiply(rank + solves + order + 1, rank);
  const auto bytes = sums ? checked_multiply(*sums, static_cast<i64>(sizeof(double))) : std::nullopt;
  if (!bytes)
    throw_error(Status::host_memory, "out of host memory: {} x {} numbers for {}", rank, rank, what);
  return *bytes + solves * static_cast<i64>(sizeof(kernels::SolveRecord));
}

Tally::Numbers numbers_at(void *memory, std::size_t solves, std::size_t order, i64 rank) {
  Tally::Numbers n;
  n.records = static_cast<kernels::SolveRecord *>(memory);
  n.weights = reinterpret_cast<double *>(n.records + solves);
  n.scales = n.weights + static_cast<i64>(solves) * rank;
  n.inner = n.scales + static_cast<i64>(order) * rank;
  n.model = n.inner + rank;
  return n;
}

} // namespace

Tally::Tally(kernels::Backend &backend, std::size_t solves, std::size_t order, i64 rank)
    : backend_(backend), copy_(bytes_of(static_cast<i64>(solves), static_cast<i64>(order), rank), what),
      memory_(backend, copy_.bytes(), what), here_(numbers_at(copy_.data(), solves, order, rank)),
      there_(numbers_at(memory_.data(), solves, order, rank)) {}

void Tally::begin_download() { backend_.begin_download(copy_.data(), memory_.data(), copy_.bytes()); }

} // namespace td::solvers
