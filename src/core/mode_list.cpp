#include "core/mode_list.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"

namespace td {

std::string_view take_token(std::string_view &text, char separator) {
  const auto end = text.find(separator);
  const std::string_view token = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return token;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view{}
                                         : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<int> parse_modes(std::string_view text, int order, std::string_view option, std::string_view whole) {
  std::vector<int> modes;
  if (trimmed(text).empty())
    return modes;
  for (auto left = std::count(text.begin(), text.end(), ',') + 1; left > 0; --left) {
    const std::string_view token = trimmed(take_token(text, ','));
    int mode = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), mode);
    if (error != std::errc{} || end != token.data() + token.size() || mode < 0 || mode >= order)
      throw_error(Status::option_range, "option '{}' = \"{}\": '{}' is not a mode; expected numbers in 0 .. {}", option,
                  whole, token, order - 1);
    if (std::find(modes.begin(), modes.end(), mode) != modes.end())
      throw_error(Status::option_range, "option '{}' = \"{}\": mode {} is there twice", option, whole, mode);
    modes.push_back(mode);
  }
  return modes;
}

} // namespace td
