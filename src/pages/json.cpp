#include "pages/json.hpp"

#include "core/sentence.hpp"

namespace td::pages {

void JsonText::string(std::string_view s) {
  std::string plain; // keeps what takes the place of text that is not UTF-8
  if (!is_utf8(s))
    s = plain = escaped(s);
  separate();
  text_ += '"';
  for (const char c : s) {
    if (c == '"' || c == '\\')
      text_.append(1, '\\').append(1, c);
    else if (c == '<' || static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(text_), "\\u{:04x}", static_cast<unsigned>(c));
    else
      text_ += c;
  }
  text_ += '"';
}

} // namespace td::pages
