// The program's verbs, one file each.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace cli {

struct Command {
  CLI::App *app;            // its part of the command line
  std::function<int()> run; // gives the exit code; throws Failure, or tdpp::Error
};

Command add_cpd(CLI::App &td);
Command add_check(CLI::App &td);
Command add_convert(CLI::App &td);
Command add_stats(CLI::App &td);
Command add_bench(CLI::App &td);
Command add_plan(CLI::App &td);
Command add_generate(CLI::App &td);
Command add_info(CLI::App &td);
Command add_selftest(CLI::App &td);
Command add_options(CLI::App &td);
Command add_complete(CLI::App &td);

} // namespace cli
