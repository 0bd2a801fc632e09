// Points in time, as tables write them, in the fields that a pattern names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace td::io {

/// "%Y-%m", or behind a pattern of what is read, "%d.%m.%Y>%Y-%m". What is read without one is ISO 8601.
class TimePattern {
public:
  /// Nothing if the text is no pattern; `problem` then says why.
  static std::optional<TimePattern> parse(std::string_view text, std::string &problem);

  /// The fields of a time that the pattern writes, packed so that larger numbers are later; nothing if the text is no
  /// time, or one without such a field.
  std::optional<u64> key(std::string_view text) const noexcept;
  /// Why key() gives nothing.
  std::string problem(std::string_view text) const;
  std::string label(u64 key) const;

private:
  /// A field by its letter behind %, or another character.
  struct Item {
    bool is_field = false;
    char c = 0;
  };
  using Items = std::vector<Item>;
  static std::optional<Items> items_of(std::string_view text, std::string_view fields, std::string &problem);

  std::optional<Items> read_; // as the table has it; nothing: ISO 8601
  Items written_;
  unsigned needed_ = 0; // a bit for each field
};

} // namespace td::io
