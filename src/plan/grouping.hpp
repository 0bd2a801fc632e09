// This header decides which modes of a sparse tensor share a partial product.
#pragma once

#include "formats/footprint.hpp"
#include "plan/groups.hpp"

namespace td::plan {

struct Grouping {
  std::vector<Group> groups;
  std::string why;
};

/// The groups of a tensor that is stored in sorted copies, one a group, are those that option "groups" names, or by
/// auto those with which a sweep is predicted to take the least time: in f64 on a core of nominal rates, in tiles as
/// auto cuts them, so that types, threads and tiles that are asked for change no groups. At least one mode stands
/// alone, so that some copy has all coordinates; throws Status::option_range for a named partition without one,
/// Status::unsupported for modes too long to be merged.
Grouping sparse_groups(const formats::EntryShape &entries, const GroupsSetting &setting);

} // namespace td::plan
