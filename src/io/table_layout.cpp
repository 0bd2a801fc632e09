#include "io/table_layout.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/nearest.hpp"
#include "core/sentence.hpp"
#include "io/text.hpp"

namespace td::io {

namespace {

/// The words of option "separator" in its order, behind auto.
constexpr std::array separators = {',', '\t', ';', '|'};

std::string_view name_of(char separator) {
  const auto place = std::find(separators.begin(), separators.end(), separator) - separators.begin();
  return choice_at("separator", 1 + static_cast<std::size_t>(place));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

/// What option "columns" asks of one column.
struct Asked {
  std::string column;
  std::string pattern; // of a time; empty: none
};

/// Cuts "user,\"a, b\",month:%Y-%m" at commas, and what is between them at the first colon, neither within quotes.
std::vector<Asked> asked_columns(std::string_view text) {
  if (!is_utf8(text) || text.find('\0') != std::string_view::npos) // patterns become labels
    throw_error(Status::option_range, "option 'columns' = \"{}\": is not UTF-8 without NUL", escaped(text));
  std::vector<Asked> columns(1);
  bool quoted = false;
  bool behind_colon = false;
  const auto finish = [&] {
    Asked &last = columns.back();
    last.column = trimmed(last.column);
    if (last.column.empty() || (behind_colon && last.pattern.empty()))
      throw_error(Status::option_range, "option 'columns' = \"{}\": column {} has no {}", escaped(text), columns.size(),
                  last.column.empty() ? "name" : "pattern behind its colon");
    behind_colon = false;
  };
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      finish();
      columns.emplace_back();
    } else if (c == ':' && !quoted && !behind_colon) {
      behind_colon = true;
    } else {
      (behind_colon ? columns.back().pattern : columns.back().column) += c;
    }
  }
  if (quoted)
    throw_error(Status::option_range, "option 'columns' = \"{}\": a quote is not closed", escaped(text));
  finish();
  const auto order = static_cast<i64>(columns.size());
  if (order < min_order || order > max_order)
    throw_error(Status::option_range, "option 'columns' = \"{}\": {}, expected {} to {}", escaped(text),
                count_text(order, "column", "columns"), min_order, max_order);
  return columns;
}

/// The whole number that a text is; 0 for another text.
std::size_t position_of(std::string_view text) {
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc{} && end == text.data() + text.size() ? n : 0;
}

/// Columns by name, or by position from 1.
class Columns {
public:
  Columns(const std::string &file, const std::vector<std::string> &first, bool has_header)
      : file_(file), fields_(first.size()) {
    if (!has_header)
      return;
    for (const std::string &field : first)
      names_.emplace_back(trimmed(field));
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (!is_utf8(names_[i]) || names_[i].find('\0') != std::string::npos)
        throw_error(Status::io, "{}: line 1: the name of column {}, {}, is not UTF-8 without NUL", file_, i + 1,
                    quoted(names_[i]));
  }

  std::size_t find(const std::string &asked) const {
    const auto found = std::find(names_.begin(), names_.end(), asked);
    if (found != names_.end()) {
      if (std::find(found + 1, names_.end(), asked) != names_.end())
        throw_error(Status::io,
                    "{}: line 1 names more than one column {}; give the column that is meant by its "
                    "position, counted from 1, or rename it",
                    file_, quoted(asked));
      return static_cast<std::size_t>(found - names_.begin());
    }
    const std::size_t position = position_of(asked);
    if (position >= 1 && position <= fields_)
      return position - 1;
    if (names_.empty())
      throw_error(Status::option_range, "{}: no column {}: the table has {} and no header, expected 1 to {}", file_,
                  quoted(asked), count_text(static_cast<i64>(fields_), "column", "columns"), fields_);
    const std::vector<std::string_view> known(names_.begin(), names_.end());
    const std::string_view near = nearest_name(asked, known);
    throw_error(Status::option_range, "{}: no column {}{}; the first line names {}", file_, quoted(asked),
                near.empty() ? std::string() : fmt::format(" (did you mean {}?)", quoted(near)), listed());
  }

  std::string name(std::size_t place) const { return names_.empty() ? std::string() : names_[place]; }
  /// The name by which sentences call it.
  std::string title(std::size_t place) const {
    return names_.empty() ? fmt::format("column {}", place + 1) : escaped(names_[place]);
  }

private:
  std::string listed() const {
    constexpr std::size_t most = 12;
    std::string text;
    for (std::size_t i = 0; i < names_.size() && i < most; ++i)
      text += (i == 0 ? "" : ", ") + escaped(names_[i].substr(0, 40));
    return text + (names_.size() > most ? fmt::format(" and {} more", names_.size() - most) : "");
  }

  const std::string &file_;
  std::size_t fields_;
  std::vector<std::string> names_; // none without a header
};

/// Names say that there is a header, and positions that there is none, unless option "header" says it.
bool has_header(const TableChoices &choices, const std::vector<Asked> &columns) {
  if (choices.header != TableHeader::automatic)
    return choices.header == TableHeader::yes;
  return !std::all_of(columns.begin(), columns.end(), [](const Asked &c) { return position_of(c.column) > 0; }) ||
         (!choices.value.empty() && position_of(choices.value) == 0);
}

std::optional<TimePattern> pattern_of(const TableChoices &choices, const Asked &asked) {
  if (asked.pattern.empty())
    return std::nullopt;
  std::string problem;
  auto pattern = TimePattern::parse(asked.pattern, problem);
  if (!pattern)
    throw_error(Status::option_range, "option 'columns' = \"{}\": pattern {} of column {}: {}",
                escaped(choices.columns), quoted(asked.pattern), quoted(asked.column), problem);
  return pattern;
}

} // namespace

TableChoices TableChoices::from(const Options &options) {
  TableChoices choices;
  choices.columns = options.text("columns");
  choices.value = options.text("value");
  choices.header = options.choice<TableHeader>("header");
  if (const std::size_t place = options.choice("separator"); place != 0)
    choices.separator = separators.at(place - 1);
  choices.quotes = options.integer("quotes") != 0;
  if (choices.columns.empty() && !choices.value.empty())
    throw_error(Status::option_range,
                "option 'value' = \"{}\" without option 'columns', which says what columns of a table become modes",
                escaped(choices.value));
  return choices;
}

FieldRules field_rules(const TableChoices &choices, std::string_view first_line) {
  if (choices.separator)
    return {*choices.separator, choices.quotes};
  std::array<i64, separators.size()> count = {};
  bool within = false;
  for (const char c : first_line) {
    within = within != (c == '"' && choices.quotes);
    for (std::size_t i = 0; i < separators.size() && !within; ++i)
      count[i] += c == separators[i] ? 1 : 0;
  }
  return {separators[static_cast<std::size_t>(std::max_element(count.begin(), count.end()) - count.begin())],
          choices.quotes};
}

TableLayout table_layout(const TableChoices &choices, const FieldRules &rules, const std::string &name,
                         const std::vector<std::string> &first) {
  const std::vector<Asked> asked = asked_columns(choices.columns);
  TableLayout layout;
  layout.rules = rules;
  layout.fields = first.size();
  layout.has_header = has_header(choices, asked);
  const Columns columns(name, first, layout.has_header);
  std::vector<std::string> modes;
  for (const Asked &a : asked) {
    ModeColumn mode;
    mode.place = columns.find(a.column);
    mode.time = pattern_of(choices, a);
    for (std::size_t i = 0; i < layout.modes.size(); ++i)
      if (layout.modes[i].place == mode.place && asked[i].pattern == a.pattern)
        throw_error(Status::option_range, "option 'columns' = \"{}\" names {} twice", escaped(choices.columns),
                    columns.title(mode.place));
    const auto same = [&](const Asked &other) { return columns.find(other.column) == mode.place; };
    mode.name = columns.name(mode.place);
    if (std::count_if(asked.begin(), asked.end(), same) > 1 && mode.time && !mode.name.empty())
      mode.name += ":" + a.pattern;
    modes.push_back(columns.title(mode.place) + (mode.time ? fmt::format(" ({})", escaped(a.pattern)) : ""));
    layout.modes.push_back(std::move(mode));
  }
  if (!choices.value.empty())
    layout.value = columns.find(choices.value);
  layout.source = fmt::format("table of {}, {} header, separated by {}; modes: {}; value: {}",
                              count_text(static_cast<i64>(first.size()), "column", "columns"),
                              layout.has_header ? "with a" : "no", name_of(rules.separator), fmt::join(modes, ", "),
                              layout.value ? columns.title(*layout.value) : "each line counts 1");
  return layout;
}

} // namespace td::io
