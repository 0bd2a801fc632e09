// One thread's work on the lines of a table.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "io/dictionary.hpp"
#include "io/table_fields.hpp"
#include "io/table_layout.hpp"

namespace td::io {

/// What the lines of a range hold, with names as their parser numbers them.
struct ParsedLines {
  int parser = 0;
  i64 records = 0;
  std::vector<Buffer<std::uint32_t>> numbers; // [order]
  ValueBuffer values;                         // none where each line counts 1
  i64 lines = 0;
  std::string problem; // of the first bad line
  i64 problem_line = 0;

  i64 bytes() const noexcept;
};

class TableParser {
public:
  TableParser(const TableLayout &layout, ValueType type)
      : layout_(layout), type_(type), cutter_(layout.rules), columns_(layout.modes.size()) {}

  void parse(std::string_view text, ParsedLines &out);
  const Dictionary &names(std::size_t mode) const noexcept { return columns_[mode].names; }
  i64 bytes() const noexcept;

private:
  /// A mode's names, and those of lines whose numbers are still to be looked up.
  struct Column {
    Dictionary names;
    std::array<std::string_view, Dictionary::batch> waiting;
    std::array<char[8], Dictionary::batch> keys; // of times
  };

  void take_line(ParsedLines &out);
  void number_waiting(ParsedLines &out);
  /// A problem counts if it is in an earlier line than the one that is known.
  void check_name(std::size_t mode, std::size_t i, ParsedLines &out) const;
  template <class T> void take_value(std::string_view field, ParsedLines &out, T &value) const;

  const TableLayout &layout_;
  ValueType type_;
  FieldCutter cutter_;
  std::deque<Column> columns_; // [order]; a column is not moved
  std::array<i64, Dictionary::batch> line_;
  std::size_t waiting_ = 0;
};

} // namespace td::io
