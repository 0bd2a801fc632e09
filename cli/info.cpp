// td info: what is loaded and what it can run on.
#include <fstream>
#include <memory>
#include <string_view>

#include <dlfcn.h>

#include <fmt/format.h>

#include "commands.hpp"
#include "flags.hpp"
#include "output.hpp"

namespace cli {

namespace {

/// The kernels that OpenBLAS has chosen for this CPU, such as "SkylakeX"; empty if another BLAS is loaded.
std::string openblas_core() {
  void *found = dlsym(RTLD_DEFAULT, "openblas_get_corename");
  if (found == nullptr)
    return {};
  const char *name = reinterpret_cast<const char *(*)()>(found)();
  return name == nullptr ? "" : name;
}

/// Linux's list of what the first CPU can do.
bool cpu_has(const std::string &flag) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("flags"))
      return (line + " ").find(" " + flag + " ") != std::string::npos;
  return false;
}

struct BlasNote {
  std::string blas;
  std::string advice; // empty: nothing to say
};

/// An OpenBLAS older than the CPU does not know it and falls back to SSE kernels, several times slower than AVX ones.
BlasNote blas_note() {
  const std::string core = openblas_core();
  if (core.empty())
    return {"not OpenBLAS", ""};
  BlasNote note{fmt::format("OpenBLAS with kernels for {}", core), ""};
  bool before_avx = false;
  for (const std::string_view old :
       {"Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Atom", "Generic", "Katmai", "Coppermine", "Northwood",
        "Banias", "Opteron", "Opteron_SSE3", "Barcelona", "Bobcat"})
    before_avx = before_avx || core == old;
  if (before_avx && cpu_has("avx2"))
    note.advice =
        fmt::format("slow: these kernels are older than this CPU; set OPENBLAS_CORETYPE={} before starting the program",
                    cpu_has("avx512f") ? "SkylakeX" : "Haswell");
  return note;
}

/// What a device string gives here: the context's description, or why there is none.
std::string device_line(const char *devices) {
  try {
    const Context context = make<Context>(td_context_create, devices, static_cast<const td_options *>(nullptr));
    return text(td_context_describe, context.get());
  } catch (const Failure &e) {
    return fmt::format("not available: {}", e.what());
  }
}

int run_info(bool json) {
  const int v = td_version();
  const std::string version = fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
  const BlasNote blas = blas_note();
  Json features, devices;
  for (const char *name : {"reference", "cpu", "openmp", "cuda"})
    features[name] = td_has_feature(name) == 1;
  for (const char *name : {"auto", "reference", "cpu", "cuda:all"})
    devices[name] = device_line(name);
  if (json) {
    Json out = {{"version", version}, {"abi", td_abi_version()}, {"features", features},
                {"devices", devices}, {"blas", blas.blas},       {"blas_advice", blas.advice}};
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
  fmt::print("blas       {}\n", blas.blas);
  if (!blas.advice.empty())
    fmt::print("           {}\n", blas.advice);
  return exit_ok;
}

} // namespace

Command add_info(CLI::App &td) {
  auto json = std::make_shared<bool>(false);
  CLI::App *app = td.add_subcommand("info", "show versions, features, devices and the BLAS that is loaded");
  app->add_flag("--json", *json, "print one JSON document on standard output");
  return {app, [json] { return run_info(*json); }};
}

} // namespace cli
