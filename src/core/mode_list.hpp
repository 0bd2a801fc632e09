// Modes as options write them.
#pragma once

#include <string_view>
#include <vector>

namespace td {

/// The next token of a text, up to a separator, which is taken off the front.
std::string_view take_token(std::string_view &text, char separator);

/// The text without blanks at the ends.
std::string_view trimmed(std::string_view text);

/// "2,0,1": different modes of a tensor, in the order given; none of a blank text. `option` and `whole`, its value,
/// are for the sentence of Status::option_range.
std::vector<int> parse_modes(std::string_view text, int order, std::string_view option, std::string_view whole);

} // namespace td
