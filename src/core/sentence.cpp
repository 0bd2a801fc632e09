#include "core/sentence.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace td {

namespace {

constexpr std::size_t longest_escape = 4; // \xNN

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The bytes of the character that text begins with if it is UTF-8 (RFC 3629); else 0.
std::size_t character_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80)
    return 1;
  const std::size_t size = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4 || text.size() < size)
    return 0;
  for (std::size_t i = 1; i < size; ++i)
    if (!is_continuation(text[i]))
      return 0;
  const bool longer_than_needed = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool no_character = (first == 0xED && byte(1) >= 0xA0) || (first == 0xF4 && byte(1) >= 0x90);
  return longer_than_needed || no_character ? 0 : size;
}

/// The same, but 0 for a control character, too.
std::size_t printable_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t size = character_size(text);
  const bool is_control = byte(0) < 0x20 || byte(0) == 0x7f ||
                          (size == 2 && byte(0) == 0xC2 && byte(1) < 0xA0); // the last are U+0080 to U+009F
  return is_control ? 0 : size;
}

std::size_t escape_byte(char c, char *out) noexcept {
  constexpr char digits[] = "0123456789abcdef";
  const char short_name = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : '\0';
  out[0] = '\\';
  if (short_name != '\0') {
    out[1] = short_name;
    return 2;
  }
  const auto byte = static_cast<unsigned char>(c);
  out[1] = 'x';
  out[2] = digits[byte >> 4];
  out[3] = digits[byte & 15];
  return longest_escape;
}

/// Escapes as much as fits, and leaves in `text` what does not.
std::size_t escape_front(std::string_view &text, char *out, std::size_t cap) noexcept {
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t size = printable_size(text);
    char made[longest_escape];
    const std::size_t made_size = size > 0 ? size : escape_byte(text[0], made);
    if (made_size > cap - used)
      break;
    std::memcpy(out + used, size > 0 ? text.data() : made, made_size);
    used += made_size;
    text.remove_prefix(size > 0 ? size : 1);
  }
  return used;
}

} // namespace

std::string count_text(i64 count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0)
      return false;
    text.remove_prefix(size);
  }
  return true;
}

std::size_t escape(std::string_view text, char *out, std::size_t cap) noexcept {
  constexpr std::string_view gap = "...";
  std::string_view rest = text;
  std::size_t used = escape_front(rest, out, cap);
  if (rest.empty())
    return used;
  rest = text;
  used = escape_front(rest, out, (cap - gap.size()) / 2);
  used += gap.copy(out + used, gap.size());
  rest.remove_prefix(rest.size() - std::min(rest.size(), cap - used));
  while (true) { // until the end, which begins with a whole character, fits
    while (!rest.empty() && is_continuation(rest[0]))
      rest.remove_prefix(1);
    std::string_view end = rest;
    const std::size_t size = escape_front(end, out + used, cap - used);
    if (end.empty())
      return used + size;
    rest.remove_prefix(1);
  }
}

std::string escaped(std::string_view text) {
  std::string out(text.size() * longest_escape, '\0');
  out.resize(escape(text, out.data(), out.size()));
  return out;
}

} // namespace td
