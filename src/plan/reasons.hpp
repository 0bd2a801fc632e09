// What options say about storing a tensor, and sentences about what follows.
#pragma once

#include <string>
#include <string_view>

#include "formats/numbering.hpp"

namespace td::plan {

/// Option "empty_rows".
formats::EmptyRows empty_rows_of(std::string_view option);
std::string why_empty_rows(std::string_view option, std::string_view format);

inline constexpr const char *why_dense = "the input is a dense array";
std::string why_dense_groups(std::string_view option);
/// Of a sparse tensor in a format of one copy.
inline constexpr const char *why_gpu_groups = "shared partial products are for the caches of a CPU";
inline constexpr const char *why_no_groups = "each mode works on the one copy of the tensor";

} // namespace td::plan
