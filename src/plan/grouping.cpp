#include "plan/grouping.hpp"

#include <algorithm>
#include <map>

#include "formats/merged.hpp"

namespace td::plan {

namespace {

constexpr int most_modes = 10;         // partitions are tried one by one, 2^modes of them
constexpr i64 least_entries = 1 << 14; // below, a sweep takes no time worth saving
constexpr double worth = 0.95;         // of the time with every mode alone

// Nanoseconds a nonzero or cell on one core of an AMD Zen 5 at rank 16 in f64. Only their proportions matter: a pass
// over the nonzeros with so many factors to multiply; a cell's row of the partial product, written once and read with
// the factors' rows for each mode.
double pass_cost(int factors) { return 0.6 + 0.5 * factors; }
double cell_cost(int modes) { return 4 + 8 * modes; }

class Chooser {
public:
  Chooser(const formats::Packed &p, int threads) : p_(p), threads_(threads), order_(p.layout.order) {}

  std::vector<Group> choose() {
    std::vector<Group> best = cut(everywhere());
    double least = worth * cost(best);
    for (unsigned cuts = 0; cuts < everywhere(); ++cuts) {
      const std::vector<Group> groups = cut(cuts);
      const bool one_alone = std::any_of(groups.begin(), groups.end(), [](const Group &g) { return g.size() == 1; });
      if (groups.size() < 2 || !one_alone)
        continue;
      const double c = cost(groups);
      if (c < least) {
        least = c;
        best = groups;
      }
    }
    return best;
  }

private:
  unsigned everywhere() const { return (1U << order_) - 1; }

  /// Groups of cyclic neighbours: a new one begins at each mode whose bit is set.
  std::vector<Group> cut(unsigned cuts) const {
    std::vector<Group> groups;
    for (int first = 0; first < order_; ++first) {
      if (((cuts >> first) & 1) == 0)
        continue;
      Group group{first};
      for (int m = (first + 1) % order_; ((cuts >> m) & 1) == 0; m = (m + 1) % order_)
        group.push_back(m);
      groups.push_back(std::move(group));
    }
    return groups;
  }

  double cost(const std::vector<Group> &groups) {
    double sum = 0;
    for (const Group &group : groups) {
      const auto modes = static_cast<int>(group.size());
      sum += static_cast<double>(p_.nnz()) * pass_cost(order_ - modes);
      if (modes > 1)
        sum += cells(group) * cell_cost(modes);
    }
    return sum;
  }

  /// As many as there are entries where it may be that many: then merging does not pay, and counting is spared.
  double cells(const Group &group) {
    double most = 1;
    for (const int m : group)
      most *= static_cast<double>(p_.dims[static_cast<std::size_t>(m)]);
    const auto entries = static_cast<double>(p_.nnz());
    if (!formats::can_merge(p_, group))
      return entries;
    if (most < entries / 16)
      return most;
    Group sorted = group;
    std::sort(sorted.begin(), sorted.end());
    const auto [at, fresh] = cells_.try_emplace(sorted, entries);
    if (fresh)
      at->second = static_cast<double>(formats::estimate_cells(p_, sorted, threads_));
    return at->second;
  }

  const formats::Packed &p_;
  int threads_;
  int order_;
  std::map<Group, double> cells_;
};

} // namespace

std::vector<Group> sparse_groups(const formats::Packed &p, const std::string &option, int threads) {
  const int order = p.layout.order;
  if (const auto named = named_groups(option, order)) {
    bool one_alone = false;
    for (const Group &group : *named) {
      one_alone = one_alone || group.size() == 1;
      if (group.size() > 1 && !formats::can_merge(p, group))
        throw_error(Status::unsupported,
                    "option 'groups' = \"{}\": the cells of modes {} .. {} are too many beside {} entries", option,
                    group.front(), group.back(), p.nnz());
    }
    if (!one_alone)
      throw_error(Status::option_range,
                  "option 'groups' = \"{}\": expected at least one mode alone for a sparse tensor", option);
    return *named;
  }
  if (option == "auto" && order <= most_modes && p.nnz() >= least_entries)
    return Chooser(p, threads).choose();
  std::vector<Group> alone;
  for (int m = 0; m < order; ++m)
    alone.push_back({m});
  return alone;
}

} // namespace td::plan
