#include "io/table_parser.hpp"

#include "core/sentence.hpp"
#include "io/table_names.hpp"
#include "io/text.hpp"

namespace td::io {

namespace {

std::string title(std::size_t place) { return fmt::format("column {}", place + 1); }

} // namespace

i64 ParsedLines::bytes() const noexcept {
  i64 bytes = values.bytes();
  for (const auto &column : numbers)
    bytes += column.bytes();
  return bytes;
}

void TableParser::parse(std::string_view text, ParsedLines &out) {
  const auto most = count_of('\n', text) + 1; // lines
  for (std::size_t m = 0; m < columns_.size(); ++m)
    out.numbers.emplace_back(most, "the lines of a table");
  if (layout_.value)
    out.values = ValueBuffer(type_, most, "the values of a table");
  const char *end = text.data() + text.size();
  for (const char *p = text.data(); p != end && out.problem.empty(); out.lines += cutter_.lines()) {
    p = cutter_.cut(p, end);
    out.problem_line = out.lines;
    if (cutter_.problem()[0] != '\0')
      out.problem = cutter_.problem();
    else if (!(cutter_.blank() && layout_.fields > 1))
      take_line(out);
    if (waiting_ == Dictionary::batch)
      number_waiting(out);
  }
  number_waiting(out); // may find a problem in an earlier line
}

i64 TableParser::bytes() const noexcept {
  i64 bytes = 0;
  for (const Column &column : columns_)
    bytes += column.names.bytes();
  return bytes;
}

template <class T> void TableParser::take_value(std::string_view field, ParsedLines &out, T &value) const {
  while (!field.empty() && is_blank(field.front()))
    field.remove_prefix(1);
  while (!field.empty() && is_blank(field.back()))
    field.remove_suffix(1);
  const char *p = field.data();
  const char *end = p + field.size();
  if (scan_value(p, end, value) && p == end)
    return;
  const std::string why = field.empty() ? "is empty, expected a number" : value_problem(field, type_);
  out.problem = title(*layout_.value) + ": " + (why.empty() ? quoted(field) + " is not a number" : why);
}

void TableParser::take_line(ParsedLines &out) {
  const auto &fields = cutter_.fields();
  if (fields.size() != layout_.fields) {
    out.problem = fmt::format("has {}, expected {} as in the first line",
                              count_text(static_cast<i64>(fields.size()), "field", "fields"), layout_.fields);
    return;
  }
  for (std::size_t m = 0; m < columns_.size(); ++m) {
    const ModeColumn &column = layout_.modes[m];
    std::string_view &name = columns_[m].waiting[waiting_];
    name = fields[column.place];
    if (!column.time)
      continue;
    const auto key = column.time->key(name);
    if (!key) {
      out.problem = title(column.place) + ": " + column.time->problem(name);
      return;
    }
    put_key(*key, columns_[m].keys[waiting_]);
    name = {columns_[m].keys[waiting_], sizeof(char[8])};
  }
  if (layout_.value)
    dispatch(type_,
             [&](auto zero) { take_value(fields[*layout_.value], out, out.values.as<decltype(zero)>()[out.records]); });
  if (!out.problem.empty())
    return;
  line_[waiting_++] = out.lines;
  ++out.records;
}

void TableParser::number_waiting(ParsedLines &out) {
  const i64 first = out.records - static_cast<i64>(waiting_);
  for (std::size_t m = 0; m < columns_.size() && waiting_ > 0; ++m) {
    Column &column = columns_[m];
    const std::uint32_t known = column.names.size();
    std::uint32_t *numbers = out.numbers[m].data() + first;
    column.names.find_or_add({column.waiting.data(), waiting_}, numbers);
    for (std::size_t i = 0; i < waiting_ && column.names.size() > known && !layout_.modes[m].time; ++i)
      if (numbers[i] >= known)
        check_name(m, i, out);
  }
  waiting_ = 0;
  cutter_.forget();
}

void TableParser::check_name(std::size_t mode, std::size_t i, ParsedLines &out) const {
  const std::string_view name = columns_[mode].waiting[i];
  if ((is_utf8(name) && name.find('\0') == std::string_view::npos) ||
      (!out.problem.empty() && out.problem_line <= line_[i]))
    return;
  out.problem = fmt::format("{}: {} is not UTF-8 without NUL", title(layout_.modes[mode].place), quoted(name));
  out.problem_line = line_[i];
}

} // namespace td::io
