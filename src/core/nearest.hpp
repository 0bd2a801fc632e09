// The name that somebody may have meant.
#pragma once

#include <span>
#include <string_view>

namespace td {

/// The candidate with the smallest edit distance to `name`, if it is near enough to be meant; else empty.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

} // namespace td
