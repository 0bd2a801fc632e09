// td complete: what shells complete from, made of the same flags as the help. It is not in the help itself.
#include <fmt/format.h>

#include "commands.hpp"
#include "exit_codes.hpp"

namespace cli {

namespace {

/// What may follow a flag: "-" nothing, "=" any text, else words between blanks.
std::string values_of(const CLI::Option &option) {
  if (option.get_expected_max() == 0)
    return "-";
  if (option.check_lname("devices"))
    return "auto cpu reference cuda";
  std::string type = option.get_type_name(); // "random|nvecs", "TEXT:{same,sparse,dense}", or one word
  const std::size_t list = type.find('{');
  if (list == std::string::npos && type.find('|') == std::string::npos)
    return "=";
  if (list != std::string::npos)
    type = type.substr(list + 1, type.find('}') - list - 1);
  for (char &c : type)
    c = c == '|' || c == ',' ? ' ' : c;
  return type;
}

/// A line for each verb, then one for each of its flags: verb, flag, values and help between tabs.
int run_complete(const CLI::App &td) {
  for (const CLI::App *verb : td.get_subcommands(nullptr)) {
    if (verb->get_group().empty())
      continue;
    fmt::print("{}\t\t\t{}\n", verb->get_name(), verb->get_description());
    for (const CLI::Option *option : verb->get_options())
      for (const std::string &name : option->get_lnames())
        fmt::print("{}\t--{}\t{}\t{}\n", verb->get_name(), name, values_of(*option), option->get_description());
  }
  return exit_ok;
}

} // namespace

Command add_complete(CLI::App &td) {
  CLI::App *app = td.add_subcommand("complete", "print what shells complete from")->group("");
  return {app, [&td] { return run_complete(td); }};
}

} // namespace cli
