#include "plan/grouping.hpp"

#include <algorithm>
#include <map>

#include "core/memory.hpp"
#include "formats/merged.hpp"
#include "kernels/cpu_model.hpp"
#include "kernels/gpu_model.hpp"

namespace td::plan {

namespace {

constexpr int most_modes = 10;         // partitions are tried one by one, 2^modes of them
constexpr i64 least_entries = 1 << 14; // below, a sweep takes no time worth saving
constexpr double worth = 0.95;         // of the time with every mode alone
constexpr i64 rank = 16;               // none is known yet
constexpr ValueType type = ValueType::f64;

class Chooser {
public:
  explicit Chooser(const formats::EntryShape &x) : x_(x), order_(static_cast<int>(x.dims.size())) {}

  Grouping choose() {
    std::vector<Group> best = cut(everywhere());
    const double alone = cost(best);
    double least = worth * alone;
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
    const double saved = 100 * (1 - least / alone);
    if (static_cast<int>(best.size()) == order_)
      return {std::move(best), fmt::format("sharing partial products is expected to save less than {:.0f} % of a sweep",
                                           100 * (1 - worth))};
    return {std::move(best), fmt::format("expected to save {:.0f} % of a sweep's MTTKRP", saved)};
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
      const auto [at, fresh] = seconds_.try_emplace(group, 0);
      if (fresh)
        at->second = seconds(group);
      sum += at->second;
    }
    return sum;
  }

  static double seconds(const kernels::cpu::Walk &walk) {
    return kernels::cpu::seconds_of(walk, rank, rank, type, kernels::cpu::core_rates);
  }

  /// A sweep goes over the group's copy once, and over its cells, if it has several modes, for each of them.
  double seconds(const Group &group) {
    const double rows = group.size() > 1 ? cells(group) : static_cast<double>(dim(group.front()));
    const auto segments = [&](std::span<const int> dropped) {
      double tiles = 1;
      for (int m = 0; m < order_; ++m)
        if (std::find(group.begin(), group.end(), m) == group.end())
          tiles *= static_cast<double>(((dim(m) - 1) >> std::min(dropped[static_cast<std::size_t>(m)], 62)) + 1);
      return tiles > 1 ? kernels::gpu::expected_rows(tiles * rows, static_cast<double>(x_.nnz)) : rows;
    };
    const formats::CopySize copy = formats::copy_size({x_.dims, x_.nnz, type, segments}, group, {}, 1);
    double sum = seconds(kernels::cpu::walk_over(formats::view_of(copy, x_.nnz, type), type));
    if (group.size() == 1)
      return sum;
    std::vector<i64> dims;
    for (const int m : group)
      dims.push_back(dim(m));
    dims.push_back(saturated(copy.cells));
    for (int place = 0; place < static_cast<int>(group.size()); ++place)
      sum += seconds(kernels::cpu::walk_in_no_order(dims, place, dims.back(), 8 * std::ssize(dims) + size_of(type)));
    return sum;
  }

  i64 dim(int mode) const { return x_.dims[static_cast<std::size_t>(mode)]; }

  /// Gives as many as there are entries where it may be that many: then merging does not pay, and counting is spared.
  double cells(const Group &group) const {
    double most = 1;
    for (const int m : group)
      most *= static_cast<double>(dim(m));
    const auto entries = static_cast<double>(x_.nnz);
    if (!formats::can_merge(x_.dims, x_.nnz, group))
      return entries;
    if (most < entries / 16)
      return most;
    std::vector<int> dropped(x_.dims.size(), formats::all_bits);
    for (const int m : group)
      dropped[static_cast<std::size_t>(m)] = 0;
    return x_.combinations(dropped);
  }

  const formats::EntryShape &x_;
  int order_;
  std::map<Group, double> seconds_;
};

} // namespace

Grouping sparse_groups(const formats::EntryShape &x, const GroupsSetting &setting) {
  const int order = static_cast<int>(x.dims.size());
  if (const auto named = named_groups(setting, order)) {
    bool one_alone = false;
    for (const Group &group : *named) {
      one_alone = one_alone || group.size() == 1;
      if (group.size() > 1 && !formats::can_merge(x.dims, x.nnz, group))
        throw_error(Status::unsupported,
                    "option 'groups' = \"{}\": the cells of modes {} .. {} are too many beside {} entries",
                    setting.text, group.front(), group.back(), x.nnz);
    }
    if (!one_alone)
      throw_error(Status::option_range,
                  "option 'groups' = \"{}\": expected at least one mode alone for a sparse tensor", setting.text);
    return {*named, "asked for by option 'groups'"};
  }
  if (setting.ask == Ask::automatic && order <= most_modes && x.nnz >= least_entries)
    return Chooser(x).choose();
  std::vector<Group> alone;
  for (int m = 0; m < order; ++m)
    alone.push_back({m});
  if (setting.ask == Ask::none)
    return {std::move(alone), "asked for by option 'groups'"};
  return {std::move(alone),
          order > most_modes ? fmt::format("more than {} modes: partitions are not tried", most_modes)
                             : fmt::format("fewer than {} entries: a sweep takes no time worth saving", least_entries)};
}

} // namespace td::plan
