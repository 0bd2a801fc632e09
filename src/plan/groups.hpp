// Modes whose MTTKRPs in a sweep share a partial product.
//
// With a group's modes merged into one, the tensor's MTTKRP in that mode is a matrix T of one row a cell (a combination
// of the group's indices) and R columns, in which the factors outside the group are already multiplied in. MTTKRP in a
// mode of the group is a sum over these rows, times those of the group's other factors (Kernels::mttkrp_cells). Of a
// sparse tensor, whose cells are those that hold entries, it is that of a small tensor with an entry of value 1 a cell,
// whose coordinates are the group's indices and the cell's number, T being the factor of the last. T serves all modes
// of the group until a factor outside it changes, so that a sweep in natural order reads the tensor once a group
// instead of once a mode: the idea of dimension trees (Phan, Tichavsky, Cichocki 2013), two levels of them. Of a dense
// tensor groups are what option "groups" names; which products its sweeps go through says plan/sweep_tree.hpp.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/formats.hpp"
#include "plan/settings.hpp"

namespace td::plan {

/// Each mode follows the one before it; after the last comes mode 0.
using Group = std::vector<int>;

class Groups {
public:
  /// Every mode alone.
  explicit Groups(int order);

  /// The groups of a dense tensor that option "groups" names, else every mode alone: what sweeps share is then up to
  /// plan/sweep_tree.hpp.
  Groups(std::span<const i64> dims, const GroupsSetting &setting);

  /// The groups of a sparse tensor: a partition, and the nonempty cells of each group of several modes (of one mode:
  /// anything).
  Groups(std::span<const i64> dims, Ask asked, std::vector<Group> partition, std::vector<formats::Coo> cells);

  int count() const noexcept { return static_cast<int>(merged_.size()); }
  const Group &modes(int group) const { return merged(group).modes; }
  int group_of(int mode) const { return group_of_[static_cast<std::size_t>(mode)]; }

  /// Whether the modes of a group share a partial product; a mode alone shares nothing.
  bool shared(int group) const;

  /// Says how many rows the partial product has.
  i64 cell_count(int group) const { return merged(group).cell_count; }

  /// A sparse tensor's group of several modes has an entry of value 1 a cell, in the cells' order; the last mode is the
  /// cell's number.
  const formats::Coo &cells(int group) const { return *merged(group).cells; }

  /// Dims of the tensor with the group's modes merged into one, the place of that one, and which of the tensor's modes
  /// stands at each place (-1: the merged one).
  std::span<const i64> merged_dims(int group) const { return merged(group).merged_dims; }
  int merged_mode(int group) const { return merged(group).merged_mode; }
  std::span<const int> mode_at(int group) const { return merged(group).mode_at; }

  /// Whether the option names the partition.
  bool named() const { return asked_ == Ask::named; }
  /// "0,1|2,3", single modes too; of a dense tensor "auto" and "multi-sweep" by these words.
  const std::string &text() const noexcept { return text_; }

private:
  struct MergedModes {
    Group modes;
    i64 cell_count = 0;
    int merged_mode = 0;
    std::vector<i64> merged_dims;
    std::vector<int> mode_at;
    std::optional<formats::Coo> cells;
  };

  MergedModes &merged(int group) const { return *merged_[static_cast<std::size_t>(group)]; }
  void add(std::vector<Group> partition, std::vector<formats::Coo> cells);
  void add(Group modes, std::optional<formats::Coo> cells);

  std::vector<i64> dims_;
  bool sparse_ = false;
  Ask asked_ = Ask::none;
  std::string text_;
  std::vector<int> group_of_;
  std::vector<std::unique_ptr<MergedModes>> merged_;
};

/// The partition that option "groups" names; nothing for auto and none. Throws Status::option_range unless it holds
/// every mode once, in two groups or more of cyclic neighbours.
std::optional<std::vector<Group>> named_groups(const GroupsSetting &setting, int order);

} // namespace td::plan
