// Lines, words and numbers of text files: what all text readers share.
#pragma once

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fast_float/fast_float.h>

#include "core/types.hpp"
#include "io/file.hpp"

namespace td::io {

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

/// Lines end with LF, CR LF, or the text. A CR elsewhere ends nothing and separates nothing.
inline bool at_line_end(const char *p, const char *end) noexcept {
  return p == end || *p == '\n' || (*p == '\r' && (end - p == 1 || p[1] == '\n'));
}

/// A comment runs from #, % or // to the end of its line.
inline bool at_comment(const char *p, const char *end) noexcept {
  return p != end && (*p == '#' || *p == '%' || (*p == '/' && end - p > 1 && p[1] == '/'));
}

/// Whether a word ends before p.
inline bool at_word_end(const char *p, const char *end) noexcept {
  return at_line_end(p, end) || is_blank(*p) || at_comment(p, end);
}

inline const char *skip_blanks(const char *p, const char *end) noexcept {
  while (p != end && is_blank(*p))
    ++p;
  return p;
}

/// The newline that ends the line p is in, or end.
inline const char *line_end(const char *p, const char *end) noexcept {
  const void *newline = p == end ? nullptr : std::memchr(p, '\n', static_cast<std::size_t>(end - p));
  return newline == nullptr ? end : static_cast<const char *>(newline);
}

/// Whether a CR stands in [p, end) that no LF follows: a program that ends lines so would see a line end there.
bool has_lone_return(const char *p, const char *end) noexcept;

/// Reads an index at p and moves p behind it; false (p anywhere) if there is no whole number in [0, 2^63 - 1].
inline bool scan_index(const char *&p, const char *end, i64 &index) noexcept {
  const char *begin = p;
  u64 v = 0;
  for (; p != end && *p >= '0' && *p <= '9'; ++p)
    v = v * 10 + static_cast<u64>(*p - '0');
  constexpr std::ptrdiff_t safe_digits = 18; // 10^18 < 2^63
  if (p == begin || !at_word_end(p, end))
    return false;
  index = static_cast<i64>(v);
  return p - begin <= safe_digits || std::from_chars(begin, p, index).ec == std::errc{};
}

/// Reads a finite number of type T at p, rounded once, and moves p behind it; false (p anywhere) if there is none.
template <class T> bool scan_value(const char *&p, const char *end, T &value) noexcept {
  const char *begin = p;
  if (end - p > 1 && *p == '+' && p[1] != '-')
    ++begin; // from_chars knows no plus sign
  const auto result = fast_float::from_chars(begin, end, value);
  p = result.ptr;
  return result.ec == std::errc{} && p != begin && std::isfinite(value) && at_word_end(p, end);
}

/// A line that is neither blank nor all comment.
struct Line {
  std::string_view text; // without comment, newline and surrounding blanks
  i64 number = 0;        // from 1
};

class Lines {
public:
  explicit Lines(std::span<const char> text) : at_(text.data()), end_(text.data() + text.size()) {}
  bool next(Line &line);
  const char *position() const noexcept { return at_; } // begin of the line after the last one given
  i64 line_number() const noexcept { return number_; }  // of the last one given

private:
  const char *at_;
  const char *end_;
  i64 number_ = 0;
};

/// Cuts the next word off a line; empty at its end.
std::string_view take_word(std::string_view &line) noexcept;

/// The words of a line; no more than `most` + 1 of them.
std::vector<std::string_view> words_of(std::string_view line, std::size_t most);

/// A word as error texts show it: in quotes, shortened, escaped.
std::string quoted(std::string_view word);

/// Why scan_index or scan_value refuses a word, as in "'1.5' is not a whole number"; empty if it does not.
std::string index_problem(std::string_view word);
std::string value_problem(std::string_view word, ValueType type);

/// One number after the other over line ends, for the parts of a file that are too small or too nested for threads.
class Words {
public:
  explicit Words(const Input &text) : name_(text.name), lines_(text.bytes) {}
  bool next(std::string_view &word);
  std::string_view expect(std::string_view what); // throws if the text ends
  i64 expect_index(std::string_view what);
  double expect_value(std::string_view what);
  i64 line_number() const noexcept { return line_.number; }

private:
  std::string name_;
  Lines lines_;
  Line line_;
};

} // namespace td::io
