// td info: what is loaded and what it can run on.
#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "flags.hpp"
#include "output.hpp"

namespace cli {

namespace {

/// What a device string gives here: the context's description, or why there is none.
std::string device_line(const char *devices) {
  try {
    const Context context = make<Context>(td_context_create, devices, nullptr);
    return text(td_context_describe, context);
  } catch (const tdpp::Error &e) {
    return fmt::format("not available: {}", e.what());
  }
}

int run_info(bool json) {
  const int v = td_version();
  const std::string version = fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
  Json features, devices;
  for (const char *name : {"reference", "cpu", "openmp", "cuda"})
    features[name] = td_has_feature(name) == 1;
  for (const char *name : {"auto", "reference", "cpu", "cuda:all"})
    devices[name] = device_line(name);
  if (json) {
    Json out = {{"version", version}, {"abi", td_abi_version()}, {"features", features}, {"devices", devices}};
    print_json(out);
    return exit_ok;
  }
  fmt::print("td         {} (ABI {}; this program was built for {}.{}.{}, ABI {})\n", version, td_abi_version(),
             TD_VERSION_MAJOR, TD_VERSION_MINOR, TD_VERSION_PATCH, TD_ABI_VERSION);
  fmt::print("features  ");
  for (const auto &[name, there] : features.items())
    fmt::print(" {}{}", there.get<bool>() ? "" : "no ", name);
  fmt::print("\n");
  for (const auto &[name, line] : devices.items())
    fmt::print("{:<10} {}\n", name, line.get<std::string>());
  return exit_ok;
}

} // namespace

Command add_info(CLI::App &td) {
  auto json = std::make_shared<bool>(false);
  CLI::App *app = td.add_subcommand("info", "show versions, features and devices");
  app->add_flag("--json", *json, "print one JSON document on standard output");
  return {app, [json] { return run_info(*json); }};
}

} // namespace cli
