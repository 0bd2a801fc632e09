// Command-line flags, most of them made from the library's option table when the program starts.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "handles.hpp"

namespace cli {

using Json = nlohmann::ordered_json;

/// A row of the option table, as td_option_describe gives it.
struct OptionRow {
  std::string scope, name, type, default_text, smallest, largest, choices, help;
};
std::vector<OptionRow> option_table();

/// "max_iters" -> "--max-iters"
std::string flag_name(std::string_view option);

/// A sentence of the library as the command line says it: "option 'tol'" and "option index_base" become the flags.
std::string in_flags(std::string_view sentence);

/// Checks of numbers that say what was expected.
CLI::Validator positive_integer();
CLI::Validator positive_number();
CLI::Validator nonnegative_number();

/// The flags of some scopes of the table, and the options that were given with them.
class TableFlags {
public:
  void add(CLI::App &app, std::initializer_list<std::string_view> scopes);
  Options options() const;
  Json given() const;

private:
  struct Given {
    CLI::Option *flag;
    std::string value;
  };
  std::map<std::string, Given> flags_; // a map: CLI11 keeps references to the values
};

/// Flags that every command which computes has.
struct WorkFlags {
  std::string devices = "auto";
  bool json = false;
  bool quiet = false;
  TableFlags table;

  void add(CLI::App &app, std::initializer_list<std::string_view> scopes);
  /// A context on the devices; its warnings go to standard error unless quiet.
  Context context() const;
};

} // namespace cli
