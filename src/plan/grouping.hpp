// Which modes of a sparse tensor share a partial product.
#pragma once

#include "formats/footprint.hpp"
#include "plan/groups.hpp"

namespace td::plan {

struct Grouping {
  std::vector<Group> groups;
  std::string why;
};

/// Of a tensor that is stored in sorted copies, one a group: what option "groups" names, or by auto what a sweep is
/// expected to take the least time with. At least one mode stands alone, so that some copy has all coordinates; throws
/// Status::option_range for a named partition without one, Status::unsupported for modes too long to be merged.
Grouping sparse_groups(const formats::EntryShape &entries, const GroupsSetting &setting);

} // namespace td::plan
