// Modes whose MTTKRPs in a sweep share a partial product.
//
// With a group's modes merged into one, the tensor's MTTKRP in that mode is a matrix T of one row a cell (a combination
// of the group's indices) and R columns, in which the factors outside the group are already multiplied in. MTTKRP in a
// mode of the group is that of a small tensor with an entry of value 1 a cell, whose coordinates are the group's
// indices and the cell's number, T being the factor of the last. T serves all modes of the group until a factor outside
// it changes, so that a sweep in natural order reads the tensor once a group instead of once a mode: the idea of
// dimension trees (Phan, Tichavsky, Cichocki 2013), two levels of them.
#pragma once

#include <memory>
#include <mutex>
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

  /// The groups of a dense tensor, by option "groups": auto, none or a partition as in "0,1|2,3".
  Groups(std::span<const i64> dims, ValueType type, const GroupsSetting &setting);

  /// The groups of a sparse tensor: a partition, and the nonempty cells of each group of several modes (of one mode:
  /// anything).
  Groups(std::span<const i64> dims, ValueType type, Ask asked, std::vector<Group> partition,
         std::vector<formats::Coo> cells);

  int count() const noexcept { return static_cast<int>(parts_.size()); }
  const Group &modes(int group) const { return part(group).modes; }
  int group_of(int mode) const { return group_of_[static_cast<std::size_t>(mode)]; }

  /// Whether the modes of a group should share a partial product of `rank` columns: where the option names the
  /// partition, and of a sparse tensor, which has no other copy for them, always; by auto, if it takes at most a
  /// quarter of the tensor's memory. A mode alone shares nothing.
  bool shared(int group, i64 rank) const;

  /// Says how many rows the partial product has.
  i64 cell_count(int group) const { return part(group).cell_count; }

  /// An entry of value 1 a cell, in the cells' order; the last mode is the cell's number. Made when first asked for, by
  /// whichever thread comes first.
  const formats::Coo &cells(int group) const;

  /// Dims of the tensor with the group's modes merged into one, the place of that one, and which of the tensor's modes
  /// stands at each place (-1: the merged one).
  std::span<const i64> merged_dims(int group) const { return part(group).merged_dims; }
  int merged_mode(int group) const { return part(group).merged_mode; }
  std::span<const int> mode_at(int group) const { return part(group).mode_at; }

  /// Whether the option names the partition.
  bool named() const { return asked_ == Ask::named; }
  /// "0,1|2,3", single modes too.
  const std::string &text() const noexcept { return text_; }

private:
  struct Part {
    Group modes;
    i64 cell_count = 0;
    int merged_mode = 0;
    std::vector<i64> merged_dims;
    std::vector<int> mode_at;
    std::once_flag once;
    std::optional<formats::Coo> cells;
  };

  Part &part(int group) const { return *parts_[static_cast<std::size_t>(group)]; }
  void add(std::vector<Group> partition, std::vector<formats::Coo> cells);
  void add(Group modes, std::optional<formats::Coo> cells);

  std::vector<i64> dims_;
  ValueType type_ = ValueType::f64;
  bool sparse_ = false;
  Ask asked_ = Ask::none;
  std::string text_;
  std::vector<int> group_of_;
  std::vector<std::unique_ptr<Part>> parts_;
};

/// The partition that option "groups" names; nothing for auto and none. Throws Status::option_range unless it holds
/// every mode once, in two groups or more of cyclic neighbours.
std::optional<std::vector<Group>> named_groups(const GroupsSetting &setting, int order);

} // namespace td::plan
