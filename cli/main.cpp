// td: tensor decompositions from the command line, written against td.h alone.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "commands.hpp"
#include "flags.hpp"
#include "handles.hpp"
#include "output.hpp"
#include "processes.hpp"

namespace {

using namespace cli;

/// The arguments in the order CLI11 takes them (last first); "--max_iters" is understood as "--max-iters".
std::vector<std::string> arguments(int argc, char **argv) {
  std::vector<std::string> out(argv + 1, argv + argc);
  for (std::string &argument : out) {
    if (argument == "--")
      break; // what follows are file names
    if (argument.starts_with("--"))
      std::replace(argument.begin(),
                   argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())), '_',
                   '-');
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// "td help" is "td --help", "td help cpd" is "td cpd --help" and "td version" is "td --version". Arguments are last
/// first.
void understand_words(std::vector<std::string> &words) {
  if (words.empty())
    return;
  if (words.back() == "version") {
    words.back() = "--version";
  } else if (words.back() == "help") {
    words.pop_back();
    words.insert(words.begin(), "--help");
  }
}

std::string version() {
  const int v = td_version();
  return fmt::format("td {}.{}.{} (ABI {})", v / 10000, v / 100 % 100, v % 100, td_abi_version());
}

std::vector<std::string> names_of_commands(const CLI::App &td) {
  std::vector<std::string> names;
  for (const CLI::App *command : td.get_subcommands(nullptr))
    if (!command->get_group().empty()) // those that are hidden have none
      names.push_back(command->get_name());
  return names;
}

/// What is wrong with a command line; CLI11's words where there is nothing to add.
std::string sentence_of(const CLI::ParseError &error, const CLI::App &td, const std::vector<std::string> &words) {
  const auto used = td.get_subcommands();
  if (used.empty()) {
    const std::vector<std::string> commands = names_of_commands(td);
    const bool named = !words.empty() && !words.back().starts_with('-');
    return fmt::format("{}{}; commands are {}",
                       named ? fmt::format("there is no command '{}'", shown(words.back())) : "a command is missing",
                       named ? did_you_mean(words.back(), commands) : "", fmt::join(commands, ", "));
  }
  std::vector<std::string> flags;
  for (const CLI::Option *option : used.front()->get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  for (const std::string &word : words) {
    const std::string flag = word.substr(0, word.find('='));
    if (flag.starts_with("--") && flag != "--" && std::find(flags.begin(), flags.end(), flag) == flags.end())
      return fmt::format("there is no option '{}'{}", shown(flag), did_you_mean(flag, flags));
  }
  return shown(error.what());
}

int run(int argc, char **argv) {
  CLI::App td("Decomposes sparse and dense tensors.", "td");
  td.set_version_flag("--version", version(), "print the version");
  td.require_subcommand(1);
  td.footer(exit_code_help);
  const std::vector<Command> commands = {add_cpd(td),      add_check(td),    add_convert(td), add_stats(td),
                                         add_plan(td),     add_generate(td), add_bench(td),   add_info(td),
                                         add_selftest(td), add_options(td),  add_complete(td)};
  std::vector<std::string> words = arguments(argc, argv);
  understand_words(words);
  try {
    td.parse(std::vector<std::string>(words)); // which it takes apart
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0)
      return td.exit(e); // --help, --version
    const auto used = td.get_subcommands();
    fmt::print(stderr, "td: {}; see td{}{} --help\n", sentence_of(e, td, words), used.empty() ? "" : " ",
               used.empty() ? "" : used.front()->get_name());
    return exit_usage;
  }
  for (const Command &command : commands)
    if (command.app->parsed())
      return command.run();
  return exit_internal;
}

int fail(int code, const char *sentence) {
  std::fflush(stdout);
  if (!Processes::all().is_told(sentence))
    std::fprintf(stderr, "td: %s\n", shown(in_flags(sentence)).c_str());
  return code;
}

int run_to_end(int argc, char **argv) {
  constexpr const char *no_output = "standard output cannot be written";
  try {
    const int code = run(argc, argv);
    // Little output meets a full disk only here; a result that did not arrive is no success.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return fail(exit_input, no_output);
    return code;
  } catch (const Failure &e) {
    return fail(e.code, e.what());
  } catch (const tdpp::Error &e) {
    return fail(exit_code(e.status()), e.what());
  } catch (const std::bad_alloc &) {
    return fail(exit_memory, "out of memory");
  } catch (const std::exception &e) {
    if (std::ferror(stdout) != 0)
      return fail(exit_input, no_output);
    return fail(exit_internal, e.what());
  }
}

} // namespace

int main(int argc, char **argv) {
  // A write beyond the limit on files' sizes fails with a sentence instead of ending the program.
  std::signal(SIGXFSZ, SIG_IGN);
  const int code = run_to_end(argc, argv);
  Processes::all().finish(code);
  return code;
}
