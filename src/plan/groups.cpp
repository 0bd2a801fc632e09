#include "plan/groups.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/ranges.h>

#include "core/checked.hpp"
#include "core/mode_list.hpp"

namespace td::plan {

namespace {

constexpr const char *option_name = "groups";

std::vector<Group> single_modes(int order) {
  std::vector<Group> groups;
  for (int m = 0; m < order; ++m)
    groups.push_back({m});
  return groups;
}

std::vector<Group> dense_groups(std::span<const i64> dims, const GroupsSetting &setting) {
  const int order = static_cast<int>(dims.size());
  if (const auto named = named_groups(setting, order)) {
    for (const Group &group : *named)
      if (group.front() > group.back())
        throw_error(Status::option_range,
                    "option '{}' = \"{}\": {} goes on from the last mode to the first, whose elements are not "
                    "neighbours in a dense tensor; expected ascending modes",
                    option_name, setting.text, fmt::join(group, ","));
    return *named;
  }
  return single_modes(order);
}

} // namespace

std::optional<std::vector<Group>> named_groups(const GroupsSetting &setting, int order) {
  if (setting.ask != Ask::named)
    return std::nullopt;
  const std::string &option = setting.text;
  const auto refuse = [&](const std::string &why) {
    throw_error(Status::option_range,
                "option '{}' = \"{}\": {}; expected auto, none, multi-sweep or a partition of the modes 0 .. {} as in "
                "\"0,1|2\"",
                option_name, option, why, order - 1);
  };
  std::vector<Group> groups;
  std::vector<bool> seen(static_cast<std::size_t>(order), false);
  std::string_view rest = option;
  for (auto left = std::count(option.begin(), option.end(), '|') + 1; left > 0; --left) {
    Group group = parse_modes(take_token(rest, '|'), order, option_name, option);
    if (group.empty())
      refuse("a group without modes");
    for (std::size_t k = 0; k < group.size(); ++k) {
      if (k > 0 && group[k] != (group[k - 1] + 1) % order)
        refuse(fmt::format("mode {} does not follow mode {}", group[k], group[k - 1]));
      const auto mode = static_cast<std::size_t>(group[k]);
      if (seen[mode])
        refuse(fmt::format("mode {} is there twice", group[k]));
      seen[mode] = true;
    }
    groups.push_back(std::move(group));
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end())
    refuse(fmt::format("mode {} is missing", missing - seen.begin()));
  if (groups.size() < 2)
    refuse("one group, whose partial product would be the tensor again for each column");
  return groups;
}

Groups::Groups(int order) : dims_(static_cast<std::size_t>(order), 1), group_of_(static_cast<std::size_t>(order), 0) {
  add(single_modes(order), {});
}

Groups::Groups(std::span<const i64> dims, const GroupsSetting &setting)
    : dims_(dims.begin(), dims.end()), asked_(setting.ask), group_of_(dims.size(), 0) {
  add(dense_groups(dims, setting), {});
  if (asked_ == Ask::automatic || asked_ == Ask::multi_sweep)
    text_ = setting.text;
}

Groups::Groups(std::span<const i64> dims, Ask asked, std::vector<Group> partition, std::vector<formats::Coo> cells)
    : dims_(dims.begin(), dims.end()), sparse_(true), asked_(asked), group_of_(dims.size(), 0) {
  add(std::move(partition), std::move(cells));
}

void Groups::add(std::vector<Group> partition, std::vector<formats::Coo> cells) {
  for (std::size_t g = 0; g < partition.size(); ++g) {
    text_ += fmt::format("{}{}", text_.empty() ? "" : "|", fmt::join(partition[g], ","));
    if (sparse_ && partition[g].size() > 1)
      add(std::move(partition[g]), std::move(cells[g]));
    else
      add(std::move(partition[g]), std::nullopt);
  }
}

void Groups::add(Group modes, std::optional<formats::Coo> cells) {
  auto added = std::make_unique<MergedModes>();
  std::vector<i64> inside_dims;
  for (const int m : modes) {
    group_of_[static_cast<std::size_t>(m)] = count();
    inside_dims.push_back(dims_[static_cast<std::size_t>(m)]);
  }
  // Only a sparse tensor's modes may have more, and its cells are counted.
  added->cell_count = checked_product(inside_dims).value_or(std::numeric_limits<i64>::max());
  if (cells) {
    added->cell_count = cells->values.size();
    added->cells = std::move(cells);
  }
  for (int m = 0; m < static_cast<int>(dims_.size()); ++m) {
    const bool inside = std::find(modes.begin(), modes.end(), m) != modes.end();
    if (inside && m != modes.front())
      continue;
    if (inside)
      added->merged_mode = static_cast<int>(added->mode_at.size());
    added->merged_dims.push_back(inside ? added->cell_count : dims_[static_cast<std::size_t>(m)]);
    added->mode_at.push_back(inside ? -1 : m);
  }
  added->modes = std::move(modes);
  merged_.push_back(std::move(added));
}

bool Groups::shared(int group) const { return merged(group).modes.size() > 1; }

} // namespace td::plan
