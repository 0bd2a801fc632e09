#include "io/text.hpp"

#include <algorithm>

#include "core/sentence.hpp"

namespace td::io {

namespace {

std::string_view trimmed(const char *p, const char *end) {
  p = skip_blanks(p, end);
  const char *last = p;
  for (const char *q = p; !at_line_end(q, end) && !at_comment(q, end); ++q)
    if (!is_blank(*q))
      last = q + 1;
  return {p, static_cast<std::size_t>(last - p)};
}

} // namespace

bool has_lone_return(const char *p, const char *end) noexcept {
  while (p != end) {
    const void *found = std::memchr(p, '\r', static_cast<std::size_t>(end - p));
    if (found == nullptr)
      return false;
    p = static_cast<const char *>(found) + 1;
    if (p != end && *p != '\n')
      return true;
  }
  return false;
}

bool Lines::next(Line &line) {
  while (at_ != end_) {
    const char *stop = line_end(at_, end_);
    line.text = trimmed(at_, stop);
    line.number = ++number_;
    at_ = stop == end_ ? end_ : stop + 1;
    if (!line.text.empty())
      return true;
  }
  return false;
}

std::string_view take_word(std::string_view &line) noexcept {
  const char *end = line.data() + line.size();
  const char *begin = skip_blanks(line.data(), end);
  const char *p = begin;
  while (!at_word_end(p, end))
    ++p;
  line = {p, static_cast<std::size_t>(end - p)};
  return {begin, static_cast<std::size_t>(p - begin)};
}

std::vector<std::string_view> words_of(std::string_view line, std::size_t most) {
  std::vector<std::string_view> words;
  while (words.size() <= most) {
    const std::string_view word = take_word(line);
    if (word.empty())
      break;
    words.push_back(word);
  }
  return words;
}

std::string quoted(std::string_view word) {
  constexpr std::size_t longest = 32;
  std::string text = "'";
  text += escaped(word.substr(0, longest));
  text += word.size() > longest ? "...'" : "'";
  return text;
}

std::string index_problem(std::string_view word) {
  const char *p = word.data();
  const char *end = p + word.size();
  i64 index = 0;
  if (scan_index(p, end, index))
    return {};
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (std::all_of(word.begin(), word.end(), is_digit))
    return fmt::format("{} is above 2^63 - 1", quoted(word));
  if (word.size() > 1 && word[0] == '-' && std::all_of(word.begin() + 1, word.end(), is_digit))
    return fmt::format("{} is negative", quoted(word));
  return fmt::format("{} is not a whole number", quoted(word));
}

std::string value_problem(std::string_view word, ValueType type) {
  const char *end = word.data() + word.size();
  return dispatch(type, [&](auto zero) -> std::string {
    auto value = zero;
    const char *p = word.data();
    if (scan_value(p, end, value))
      return {};
    if (p != end || word.empty() || std::isfinite(value))
      return fmt::format("{} is not a number", quoted(word));
    const bool has_digit = std::any_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
    return has_digit ? fmt::format("{} is beyond the range of {}", quoted(word), name_of(type))
                     : fmt::format("{} is not finite", quoted(word));
  });
}

bool Words::next(std::string_view &word) {
  word = take_word(line_.text);
  while (word.empty()) {
    if (!lines_.next(line_))
      return false;
    word = take_word(line_.text);
  }
  return true;
}

std::string_view Words::expect(std::string_view what) {
  std::string_view word;
  if (!next(word))
    throw_error(Status::io, "{}: the text ends after line {}, expected {}", name_, line_.number, what);
  return word;
}

i64 Words::expect_index(std::string_view what) {
  const std::string_view word = expect(what);
  const char *p = word.data();
  i64 index = 0;
  if (!scan_index(p, p + word.size(), index))
    throw_error(Status::io, "{}: line {}: {}: {}", name_, line_.number, what, index_problem(word));
  return index;
}

double Words::expect_value(std::string_view what) {
  const std::string_view word = expect(what);
  const char *p = word.data();
  double value = 0;
  if (!scan_value(p, p + word.size(), value))
    throw_error(Status::io, "{}: line {}: {}: {}", name_, line_.number, what, value_problem(word, ValueType::f64));
  return value;
}

} // namespace td::io
