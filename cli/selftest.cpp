// td selftest: shows in seconds that this installation computes what it should.
#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "output.hpp"
#include "selftest_cases.hpp"
#include "tensor_facts.hpp"

namespace cli {

namespace {

int run_selftest(const WorkFlags &flags) {
  const Context context = flags.context();
  if (!flags.json)
    fmt::print("on {}\n", text(td_context_describe, context));
  Json out = Json::array();
  int failed = 0;
  const Timer timer;
  for (const Case &c : selftest_cases()) {
    std::string why;
    try {
      c.run(context);
    } catch (const std::runtime_error &e) {
      why = e.what();
      ++failed;
    }
    if (flags.json)
      out.push_back({{"name", c.name}, {"source", c.source}, {"passed", why.empty()}, {"why", why}});
    else
      fmt::print("{}  {}\n      {}\n{}", why.empty() ? "PASS" : "FAIL", c.name, c.source,
                 why.empty() ? "" : "      " + why + "\n");
  }
  if (flags.json)
    print_json(out);
  else
    fmt::print("{} of {} passed in {:.2f} s\n", selftest_cases().size() - static_cast<std::size_t>(failed),
               selftest_cases().size(), timer.seconds());
  return failed == 0 ? exit_ok : exit_failed;
}

} // namespace

Command add_selftest(CLI::App &td) {
  auto flags = std::make_shared<WorkFlags>();
  CLI::App *app = td.add_subcommand("selftest", "compare with published numbers and identities, in seconds");
  flags->add(*app, {"context"});
  return {app, [flags] { return run_selftest(*flags); }};
}

} // namespace cli
