// Lines of a table, cut into fields. A field in double quotes may hold separators, line ends and, doubled, quotes.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/views.hpp"
#include "io/table_layout.hpp"

namespace td::io {

/// How often a character is in a text.
i64 count_of(char c, std::string_view text) noexcept;

class FieldCutter {
public:
  explicit FieldCutter(const FieldRules &rules) : rules_(rules) {}

  /// Cuts the line that begins at p, which is not the end, and gives where the next one begins. Where problem() is not
  /// empty, what it gave means nothing.
  const char *cut(const char *p, const char *end);

  /// The fields of the last line. What they point to is in the text, or stays until forget().
  const std::vector<std::string_view> &fields() const noexcept { return fields_; }
  bool blank() const noexcept { return fields_.size() == 1 && fields_[0].empty() && !any_quoted_; }
  i64 lines() const noexcept { return 1 + newlines_; } // more than 1 where a field holds line ends
  const char *problem() const noexcept { return problem_; }
  void forget() noexcept { unescaped_.clear(); }

private:
  const char *cut_quoted(const char *p, const char *end);

  FieldRules rules_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_; // fields that held doubled quotes
  bool any_quoted_ = false;
  i64 newlines_ = 0;
  const char *problem_ = "";
};

/// Where the lines of a text begin: not behind a line end that stands between quotes. The text begins with a line.
/// Where quotes are ill-placed, that a cutter finds in the first such line.
class LineStarts {
public:
  /// `all`: no text follows, and what is there is whole.
  LineStarts(std::string_view text, const FieldRules &rules, bool all);

  /// The beginning of the last line that is not whole, or the end: what is before it are whole lines.
  std::size_t behind_whole_lines() const noexcept { return whole_; }
  /// The whole lines in about so many ranges, none empty.
  Ranges split(i64 count) const;

private:
  bool odd_quotes(std::string_view part) const noexcept;

  std::string_view text_;
  bool quotes_; // whether there are any that mean something
  std::size_t whole_ = 0;
};

} // namespace td::io
