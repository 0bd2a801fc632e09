#include "solvers/breakdown.hpp"

#include <algorithm>

namespace td::solvers {

namespace {

/// The entries that a worker sums for a mode, where no processes share the tensor.
i64 load_of(const tensor::Tensor &x, const tensor::Sharding &sharding, int mode, std::size_t worker) {
  const int group = x.groups().group_of(mode);
  const bool shared = x.sparse() && x.groups().shared(group);
  return (shared ? sharding.cells(group) : sharding.rows(mode)).load[worker];
}

void add_loads(const tensor::Tensor &x, const tensor::Sharding &sharding, std::size_t worker, std::size_t place,
               Breakdown &to) {
  for (int m = 0; m < x.order(); ++m) {
    const std::size_t at = place * static_cast<std::size_t>(x.order()) + static_cast<std::size_t>(m);
    const tensor::Distribution *const d = x.distribution();
    const i64 load = d != nullptr ? x.stored_entries() : load_of(x, sharding, m, worker);
    to.entries[at] = static_cast<double>(load);
    for (const Range &rows : d != nullptr ? d->own(m) : sharding.rows(m).owned[worker])
      to.rows[at] += static_cast<double>(rows.size());
  }
}

} // namespace

Breakdown breakdown_of(const tensor::Tensor &x, const tensor::Sharding &sharding, Processes *processes,
                       const std::vector<std::vector<kernels::PhaseSeconds>> &spent) {
  const std::size_t workers = processes != nullptr ? static_cast<std::size_t>(processes->size()) : spent.size();
  const std::size_t iterations = spent.front().size();
  const std::size_t loads = workers * static_cast<std::size_t>(x.order());
  const std::size_t times = iterations * workers * kernels::phases;
  Breakdown all{std::vector<double>(loads), std::vector<double>(loads), std::vector<double>(times),
                std::vector<double>(times)};
  for (std::size_t k = 0; k < spent.size(); ++k) {
    const std::size_t place = processes != nullptr ? static_cast<std::size_t>(processes->rank()) : k;
    add_loads(x, sharding, sharding.workers() > 1 ? place : 0, place, all);
    for (std::size_t i = 0; i < iterations; ++i)
      for (std::size_t phase = 0; phase < kernels::phases; ++phase) {
        const auto &[mttkrp, rest] = spent[k][i];
        const std::size_t at = (i * workers + place) * kernels::phases + phase;
        all.mttkrp[at] = mttkrp[phase];
        all.iteration[at] = mttkrp[phase] + rest[phase];
      }
  }
  if (processes != nullptr)
    for (std::vector<double> *const numbers : {&all.entries, &all.rows, &all.mttkrp, &all.iteration})
      processes->all_reduce(*numbers, Reduction::sum);
  return all;
}

} // namespace td::solvers
