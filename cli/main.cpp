// td: tensor decompositions from the command line, written against td.h alone.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands.hpp"
#include "handles.hpp"
#include "output.hpp"

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

std::string version() {
  const int v = td_version();
  return fmt::format("td {}.{}.{} (ABI {})", v / 10000, v / 100 % 100, v % 100, td_abi_version());
}

int run(int argc, char **argv) {
  CLI::App td("Decomposes sparse and dense tensors.", "td");
  td.set_version_flag("--version", version(), "print the version");
  td.require_subcommand(1);
  td.footer(exit_code_help);
  const std::vector<Command> commands = {add_cpd(td),      add_check(td),    add_convert(td), add_stats(td),
                                         add_plan(td),     add_generate(td), add_bench(td),   add_info(td),
                                         add_selftest(td), add_options(td)};
  try {
    td.parse(arguments(argc, argv));
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0)
      return td.exit(e); // --help, --version
    const auto used = td.get_subcommands();
    fmt::print(stderr, "td: {}; see td{}{} --help\n", shown(e.what()), used.empty() ? "" : " ",
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
  std::fprintf(stderr, "td: %s\n", shown(sentence).c_str());
  return code;
}

} // namespace

int main(int argc, char **argv) {
  // A write beyond the limit on files' sizes fails with a sentence instead of ending the program.
  std::signal(SIGXFSZ, SIG_IGN);
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
