// Words and bytes of sentences: numbers that agree with their nouns, and what a terminal must not be given.
#pragma once

#include <string>
#include <string_view>

#include "core/types.hpp"

namespace td {

/// "1 entry", "2 entries"
std::string count_text(i64 count, std::string_view one, std::string_view many);

/// Whether text is UTF-8 (RFC 3629) from begin to end.
bool is_utf8(std::string_view text) noexcept;

/// Copies text to `out`, which has room for `cap` >= 3 bytes, and gives the bytes written. Of a text that does not fit
/// the middle becomes "...": a sentence ends with its reason. Control characters and bytes that are not UTF-8 become
/// \xNN, \n, \r or \t: names and contents of files come from strangers, and a terminal obeys escapes. Allocates
/// nothing.
std::size_t escape(std::string_view text, char *out, std::size_t cap) noexcept;

std::string escaped(std::string_view text);

} // namespace td
