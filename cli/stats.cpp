// td stats: how a tensor's entries lie in its slices.
#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "output.hpp"
#include "tensor_facts.hpp"

namespace cli {

namespace {

struct StatsFlags {
  std::string file;
  WorkFlags work;
};

double density(const td_tensor *x) {
  double d = static_cast<double>(get<std::int64_t>(td_tensor_nnz, x));
  for (const auto length : dims_of(x))
    d /= static_cast<double>(length);
  return d;
}

void print_stats(const td_tensor *x, const std::vector<Slices> &modes) {
  fmt::print("{}\n", text(td_tensor_describe, x));
  fmt::print("density {:.3e}, index bits {}\n\n", density(x), get<std::int64_t>(td_tensor_get_i64, x, "index_bits"));
  fmt::print("{:>4} {:>14} {:>14} {:>12} {:>12} {:>12} {:>6}\n", "mode", "slices", "nonempty", "min", "median", "max",
             "skew");
  for (std::size_t m = 0; m < modes.size(); ++m) {
    const Slices &s = modes[m];
    fmt::print("{:>4} {:>14} {:>14} {:>12} {:>12} {:>12} {:>6.2f}\n", m, s.dim, s.nonempty, s.smallest, s.median,
               s.largest, s.skew);
  }
  fmt::print("\nmin, median, max: entries in a nonempty slice. skew: 0 if slices are alike, towards 1 if a few hold "
             "most.\n");
}

int run_stats(const StatsFlags &flags) {
  const Options options = flags.work.table.options();
  const Context context = flags.work.context();
  const Tensor x = make<Tensor>(td_tensor_read, context, flags.file.c_str(), options);
  const auto modes = slices(x);
  if (!flags.work.json) {
    print_stats(x, modes);
    return exit_ok;
  }
  Json out = {{"file", flags.file},
              {"tensor", tensor_facts(x)},
              {"density", density(x)},
              {"index_bits", get<std::int64_t>(td_tensor_get_i64, x, "index_bits")},
              {"modes", Json::array()}};
  for (const Slices &s : modes)
    out["modes"].push_back({{"dim", s.dim},
                            {"nonempty", s.nonempty},
                            {"min", s.smallest},
                            {"median", s.median},
                            {"max", s.largest},
                            {"skew", s.skew}});
  print_json(out);
  return exit_ok;
}

} // namespace

Command add_stats(CLI::App &td) {
  auto flags = std::make_shared<StatsFlags>();
  CLI::App *app = td.add_subcommand("stats", "show how a tensor's entries lie in its slices, by mode");
  app->add_option("file", flags->file, "tensor: text, .tdb or .npy, also .gz")->required();
  flags->work.add(*app, {"read", "tensor", "context"});
  return {app, [flags] { return run_stats(*flags); }};
}

} // namespace cli
