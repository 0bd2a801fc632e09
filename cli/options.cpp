// td options: the option table for people.
#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "flags.hpp"
#include "output.hpp"

namespace cli {

namespace {

std::string allowed(const OptionRow &row) {
  if (!row.choices.empty())
    return row.choices;
  if (row.type == "str")
    return "text";
  return fmt::format("{} .. {}", row.smallest, row.largest);
}

int run_options(bool json) {
  const auto rows = option_table();
  if (json) {
    Json out = Json::array();
    for (const OptionRow &row : rows)
      out.push_back({{"scope", row.scope},
                     {"name", row.name},
                     {"type", row.type},
                     {"default", row.default_text},
                     {"smallest", row.smallest},
                     {"largest", row.largest},
                     {"choices", row.choices},
                     {"help", row.help}});
    print_json(out);
    return exit_ok;
  }
  std::string scope;
  for (const OptionRow &row : rows) {
    if (row.scope != scope)
      fmt::print("{}{}\n", scope.empty() ? "" : "\n", row.scope);
    scope = row.scope;
    fmt::print("  {:<20} {:<4} default {:<8} {}\n      {}\n", row.name, row.type,
               row.default_text.empty() ? "(none)" : row.default_text, allowed(row), row.help);
  }
  return exit_ok;
}

} // namespace

Command add_options(CLI::App &td) {
  auto json = std::make_shared<bool>(false);
  CLI::App *app = td.add_subcommand("options", "list every option by scope: type, default, range, meaning");
  app->add_flag("--json", *json, "print the table as JSON");
  return {app, [json] { return run_options(*json); }};
}

} // namespace cli
