#include "io/table_fields.hpp"

#include <algorithm>

namespace td::io {

namespace {

/// A line's last field without the CR of CR LF.
const char *without_return(const char *begin, const char *end) noexcept {
  return end != begin && end[-1] == '\r' ? end - 1 : end;
}

} // namespace

i64 count_of(char c, std::string_view text) noexcept {
  constexpr std::size_t lanes = 64, rows = 255; // as many rows as a lane's byte can count
  i64 count = 0;
  std::size_t at = 0;
  while (text.size() - at >= lanes) {
    unsigned char found[lanes] = {};
    for (std::size_t row = 0; row < rows && text.size() - at >= lanes; ++row, at += lanes)
      for (std::size_t i = 0; i < lanes; ++i)
        found[i] = static_cast<unsigned char>(found[i] + (text[at + i] == c ? 1 : 0));
    for (const unsigned char n : found)
      count += n;
  }
  return count + std::count(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), c);
}

const char *FieldCutter::cut(const char *p, const char *end) {
  fields_.clear();
  any_quoted_ = false;
  newlines_ = 0;
  problem_ = "";
  const char separator = rules_.separator;
  const char quote = rules_.quotes ? '"' : '\n'; // a quote that means nothing is never looked for
  for (;;) {
    if (p != end && *p == '"' && rules_.quotes) {
      p = cut_quoted(p, end);
      if (problem_[0] != '\0')
        return end;
    } else {
      const char *begin = p;
      while (p != end && *p != separator && *p != '\n' && *p != quote)
        ++p;
      if (p != end && *p == '"' && quote == '"') {
        problem_ = "a quote within a field that does not begin with one (option quotes = 0 takes quotes as they are)";
        return end;
      }
      const char *stop = p == end || *p == '\n' ? without_return(begin, p) : p;
      fields_.emplace_back(begin, static_cast<std::size_t>(stop - begin));
    }
    if (p == end)
      return end;
    if (*p++ == '\n')
      return p;
  }
}

const char *FieldCutter::cut_quoted(const char *p, const char *end) {
  const char *begin = ++p;
  any_quoted_ = true;
  bool doubled = false;
  for (;; ++p) {
    if (p == end) {
      problem_ = "a quote that is not closed";
      return end;
    }
    newlines_ += *p == '\n' ? 1 : 0;
    if (*p != '"')
      continue;
    if (end - p < 2 || p[1] != '"')
      break;
    doubled = true;
    ++p;
  }
  std::string_view field(begin, static_cast<std::size_t>(p - begin));
  if (doubled) {
    std::string &text = unescaped_.emplace_back();
    for (std::size_t i = 0; i < field.size(); i += field[i] == '"' ? 2 : 1)
      text += field[i];
    field = text;
  }
  fields_.push_back(field);
  ++p;
  if (p != end && *p == '\r' && (end - p == 1 || p[1] == '\n'))
    ++p;
  if (p != end && *p != rules_.separator && *p != '\n')
    problem_ = "text behind a field's closing quote (option quotes = 0 takes quotes as they are)";
  return p;
}

LineStarts::LineStarts(std::string_view text, const FieldRules &rules, bool all)
    : text_(text), quotes_(rules.quotes && text.find('"') != std::string_view::npos), whole_(text.size()) {
  if (all)
    return;
  bool odd = odd_quotes(text_);
  for (; whole_ > 0; --whole_) {
    const char c = text_[whole_ - 1];
    if (c == '\n' && !odd)
      return;
    odd = odd != (c == '"' && quotes_);
  }
}

bool LineStarts::odd_quotes(std::string_view part) const noexcept { return quotes_ && count_of('"', part) % 2 != 0; }

Ranges LineStarts::split(i64 count) const {
  Ranges ranges;
  const Range whole{0, static_cast<i64>(whole_)};
  i64 at = 0;
  for (i64 i = 0; i < count && at < whole.end; ++i) {
    const i64 wanted = std::max(at + 1, part_of(whole, i, count).end);
    bool odd = odd_quotes(text_.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(wanted - at)));
    i64 stop = wanted;
    while (stop < whole.end && (odd || text_[static_cast<std::size_t>(stop - 1)] != '\n')) {
      odd = odd != (quotes_ && text_[static_cast<std::size_t>(stop)] == '"');
      ++stop;
    }
    ranges.push_back({at, stop});
    at = stop;
  }
  return ranges;
}

} // namespace td::io
