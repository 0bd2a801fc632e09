// This header finds the columns of a table that become modes and values: what the options ask for, in its first line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "io/time_pattern.hpp"

namespace td::io {

/// Option "header": whether a table's first line names its columns.
enum class TableHeader { automatic, yes, no };

/// Options "columns", "value", "header", "separator" and "quotes".
struct TableChoices {
  std::string columns; // empty: the file is no table
  std::string value;   // empty: each line counts 1
  TableHeader header = TableHeader::automatic;
  std::optional<char> separator; // none: the first line decides
  bool quotes = true;

  bool asked() const noexcept { return !columns.empty(); }
  static TableChoices from(const Options &options);
};

/// How the lines of a table are cut into fields.
struct FieldRules {
  char separator = ',';
  bool quotes = true;
};

/// A column that becomes a mode.
struct ModeColumn {
  std::string name; // empty without a header
  std::size_t place = 0;
  std::optional<TimePattern> time;
};

struct TableLayout {
  FieldRules rules;
  bool has_header = false;
  std::size_t fields = 0; // of each line
  std::vector<ModeColumn> modes;
  std::optional<std::size_t> value;
  std::string source; // for people
};

/// The separator that is asked for, or the one of tab, comma, semicolon and bar of which the first line has most
/// outside quotes, a comma if it has none.
FieldRules field_rules(const TableChoices &choices, std::string_view first_line);

/// `first` are the fields of the table's first line. Throws with the name of the file where the options fit badly.
TableLayout table_layout(const TableChoices &choices, const FieldRules &rules, const std::string &name,
                         const std::vector<std::string> &first);

} // namespace td::io
