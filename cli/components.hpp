// The dims of a model, and what leads its components: the labels of the largest entries in each mode.
#pragma once

#include <cstdint>
#include <vector>

#include "flags.hpp"

namespace cli {

std::vector<std::int64_t> dims_of(const td_ktensor *model);

/// Whether the indices of some mode have labels.
bool has_labels(const td_ktensor *model);

/// A table of the components, `most` labels at most in each mode: those of entries that are at least a quarter of the
/// column's largest. Entries of the other sign stand in a line of their own.
void print_components(const td_ktensor *model, std::int64_t most);

/// It gives the weight of each component and, mode by mode, label, index and value of the entries that lead it.
Json components_of(const td_ktensor *model, std::int64_t most);

/// The names of the modes, empty where there is none.
Json mode_names(const td_ktensor *model);

} // namespace cli
