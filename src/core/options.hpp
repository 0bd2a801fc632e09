// The option table: one row an option, from which the C setters, bindings, command line and documentation come.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/types.hpp"

namespace td {

enum class OptionType { i64, f64, str };

struct OptionRow {
  std::string_view scope;
  std::string_view name;
  OptionType type;
  std::string_view default_text;
  double smallest; // numbers only; both bounds are allowed values
  double largest;
  std::string_view choices; // text only: allowed values separated by '|'; empty: any text
  std::string_view help;
};

std::span<const OptionRow> option_table() noexcept;

/// The row of that name; throws option_unknown with the nearest name.
const OptionRow &option_row(std::string_view name);

/// The word at that place among an option's choices; empty if there is none.
std::string_view choice_at(std::string_view option, std::size_t place) noexcept;

/// "scope\tname\ttype\tdefault\tmin\tmax\tchoices\thelp"
std::string describe(const OptionRow &row);

class Options {
public:
  void set(std::string_view name, i64 value);
  void set(std::string_view name, double value);
  void set_text(std::string_view name, std::string_view text);

  i64 integer(std::string_view name) const;
  double real(std::string_view name) const;      // of a whole-number option too
  std::string text(std::string_view name) const; // of any option

  /// The place of an option's word among its choices: an enum that lists them in the same order needs no table of
  /// names.
  std::size_t choice(std::string_view name) const;
  template <class Enum> Enum choice(std::string_view name) const { return static_cast<Enum>(choice(name)); }
  /// The same of an option whose first word is auto, for which there is none: the enum lists the words behind it.
  template <class Enum> std::optional<Enum> choice_behind_auto(std::string_view name) const {
    const std::size_t place = choice(name);
    return place == 0 ? std::nullopt : std::optional(static_cast<Enum>(place - 1));
  }

private:
  using Value = std::variant<i64, double, std::string>;
  Value value(const OptionRow &row) const;
  std::map<std::string, Value, std::less<>> set_;
};

} // namespace td
