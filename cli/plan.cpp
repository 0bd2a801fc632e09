// td plan: what td would do with a tensor, what that takes, and, with --check, how near that is to what happens.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "allocated.hpp"
#include "commands.hpp"
#include "entry_arrays.hpp"
#include "flags.hpp"
#include "iteration_times.hpp"
#include "output.hpp"
#include "recipe.hpp"

namespace cli {

namespace {

struct PlanFlags {
  std::string file, type;
  std::int64_t rank = 0;
  bool check = false;
  RecipeFlags recipe;
  WorkFlags work;
};

/// A prediction and what came of it.
struct Checked {
  std::string what;
  double predicted = 0;
  double came = 0;
  bool seconds = false;
};

std::int64_t bytes(const td_plan *plan, const std::string &what) {
  return get<std::int64_t>(td_plan_get_i64, plan, ("host_bytes." + what).c_str());
}

td_type type_of(const PlanFlags &flags) { return flags.type == "f32" ? TD_F32 : TD_F64; }

Plan make_plan(const PlanFlags &flags, td_context *context, const td_options *options) {
  if (!flags.file.empty())
    return make<Plan>(td_plan_read, context, flags.file.c_str(), flags.rank, options);
  const Recipe recipe = flags.recipe.wanted();
  const auto order = static_cast<std::int32_t>(recipe.dims.size());
  if (recipe.dense)
    return make<Plan>(td_plan_create_dense, context, order, recipe.dims.data(), type_of(flags), flags.rank, options);
  if (const double cells = std::accumulate(recipe.dims.begin(), recipe.dims.end(), 1.0, std::multiplies<>());
      static_cast<double>(recipe.entries) > cells)
    throw Failure(exit_usage, fmt::format("{} entries in a tensor of {:.0f} elements; expected no more entries than "
                                          "elements",
                                          recipe.entries, cells));
  return make<Plan>(td_plan_create, context, order, recipe.dims.data(), recipe.entries, type_of(flags), flags.rank,
                    options);
}

EntryArrays arrays_of(const PlanFlags &flags, td_context *context, const td_options *options) {
  if (flags.file.empty())
    return plant_arrays(context, flags.recipe.wanted(), type_of(flags));
  const Tensor x = make<Tensor>(td_tensor_read, context, flags.file.c_str(), options);
  return {x, get<td_type>(td_tensor_type, x)};
}

/// Builds the tensor, runs a few iterations and compares.
std::vector<Checked> check_plan(const PlanFlags &flags, td_context *context, const td_options *options,
                                const td_plan *plan) {
  Tensor x;
  std::vector<Checked> out;
  {
    const EntryArrays arrays = arrays_of(flags, context, options);
    const Allocated memory;
    x = arrays.build(context, options);
    const auto peak = static_cast<double>(memory.most());
    const auto stored = static_cast<double>(bytes(plan, "tensor"));
    out.push_back({"tensor", stored, static_cast<double>(get<std::int64_t>(td_tensor_get_i64, x, "bytes"))});
    out.push_back({"building at most", stored + static_cast<double>(bytes(plan, "building")), peak});
  }
  Options run = copy(options);
  const auto period = get<std::int64_t>(td_plan_get_i64, plan, "sweeps");
  run.set("max_iters", std::to_string(iterations_for(3, period))).set("tol", "0").set("exact_residual", "never");
  const Allocated memory;
  const Fitted fitted = cpals(context, x, flags.rank, run);
  out.push_back({"CP-ALS at most", static_cast<double>(bytes(plan, "solver")), static_cast<double>(memory.most())});

  const IterationTimes times(fitted.report, period);
  const std::vector<double> predicted = series(td_plan_get_series, plan, "mttkrp_seconds");
  const auto least = [](const std::vector<double> &of) { return *std::min_element(of.begin(), of.end()); };
  for (std::size_t m = 0; m < predicted.size() && !times.iteration.empty(); ++m)
    out.push_back({fmt::format("MTTKRP mode {}", m), predicted[m], least(times.mttkrp[m]), true});
  if (!times.iteration.empty())
    out.push_back({"iteration", get<double>(td_plan_get_f64, plan, "seconds.iteration"),
                   std::accumulate(times.iteration.begin(), times.iteration.end(), 0.0) /
                       static_cast<double>(times.iteration.size()),
                   true});
  return out;
}

void print_checked(const std::vector<Checked> &rows) {
  fmt::print("\n{:<18}{:>18}{:>18}{:>10}\n", "", "predicted", "came", "ratio");
  for (const Checked &row : rows) {
    const auto text = [&](double v) {
      return row.seconds ? fmt::format("{:.3f} ms", 1e3 * v) : fmt::format("{:.0f}", v);
    };
    fmt::print("{:<18}{:>18}{:>18}{:>10}\n", row.what, text(row.predicted), text(row.came),
               row.came > 0 ? fmt::format("{:.3f}", row.predicted / row.came) : "");
  }
}

Json document(const PlanFlags &flags, const td_plan *plan, const std::vector<Checked> &checked) {
  Json out = Json::object();
  if (!flags.file.empty())
    out["file"] = flags.file;
  out["options"] = flags.work.table.given();
  for (const char *key : {"order", "nnz", "sparse", "rank", "workers", "threads", "sweeps", "fits", "processes",
                          "exchange_messages", "exchange_calls", "scales_to", "fastest_processes"})
    out[key] = get<std::int64_t>(td_plan_get_i64, plan, key);
  for (const char *key :
       {"format", "groups", "rows", "tiles", "conflicts", "precision", "sharding", "exchange", "dense_kernel"})
    out[key] = {{"choice", text(td_plan_get_str, plan, key)},
                {"why", text(td_plan_get_str, plan, (std::string(key) + ".why").c_str())}};
  out["devices"] = text(td_plan_get_str, plan, "devices");
  for (const std::string place : {"host", "device"})
    for (const char *what : {"tensor", "building", "solver", "peak"})
      out[place + "_bytes"][what] =
          get<std::int64_t>(td_plan_get_i64, plan, fmt::format("{}_bytes.{}", place, what).c_str());
  out["host_bytes"]["available"] = bytes(plan, "available");
  out["host_bytes"]["exchanged"] = bytes(plan, "exchanged");
  out["device_bytes"]["streamed"] = get<std::int64_t>(td_plan_get_i64, plan, "device_bytes.streamed");
  for (const char *key : {"read", "near_rows", "middle_rows", "far_rows", "operations"})
    out["rates"][key] = get<double>(td_plan_get_f64, plan, fmt::format("rate.{}", key).c_str());
  out["device_bytes"]["exchanged"] = get<std::int64_t>(td_plan_get_i64, plan, "device_bytes.exchanged");
  for (const char *key : {"iteration", "mttkrp", "solve", "exchange"})
    out["seconds"][key] = get<double>(td_plan_get_f64, plan, fmt::format("seconds.{}", key).c_str());
  const auto values = [&](const char *key) { return series(td_plan_get_series, plan, key); };
  const auto dims = values("dims"), rows = values("rows"), seconds = values("mttkrp_seconds"), load = values("load"),
             workspace = values("workspace_bytes"), imbalance = values("imbalance"),
             unsplit = values("imbalance_unsplit"), split = values("split_rows");
  const std::size_t workers = load.size() / dims.size();
  out["modes"] = Json::array();
  for (std::size_t m = 0; m < dims.size(); ++m) {
    const auto begin = load.begin() + static_cast<std::ptrdiff_t>(m * workers);
    out["modes"].push_back({{"dim", static_cast<std::int64_t>(dims[m])},
                            {"rows", static_cast<std::int64_t>(rows[m])},
                            {"kernel", text(td_plan_get_str, plan, fmt::format("kernel.{}", m).c_str())},
                            {"conflicts", text(td_plan_get_str, plan, fmt::format("conflicts.{}", m).c_str())},
                            {"seconds", seconds[m]},
                            {"workspace_bytes", static_cast<std::int64_t>(workspace[m])},
                            {"load", std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(workers))},
                            {"imbalance", imbalance[m]},
                            {"imbalance_unsplit", unsplit[m]},
                            {"split_rows", static_cast<std::int64_t>(split[m])}});
  }
  out["scaling_seconds"] = values("scaling_seconds");
  out["assumptions"] = text(td_plan_get_str, plan, "assumptions");
  for (const Checked &row : checked)
    out["checked"].push_back({{"what", row.what},
                              {"unit", row.seconds ? "seconds" : "bytes"},
                              {"predicted", row.predicted},
                              {"came", row.came}});
  return out;
}

int run_plan(const PlanFlags &flags) {
  if (flags.file.empty() != flags.recipe.given())
    throw Failure(exit_usage, "give either a file, or --like or --dims");
  if (!flags.file.empty() && !flags.type.empty())
    throw Failure(exit_usage, "--type is for a shape; a file's values take --value-type");
  const Options options = flags.work.table.options();
  if (flags.check && get<std::int64_t>(td_options_get_i64, options, "workers") > 0)
    throw Failure(exit_usage, "--check runs with the workers that there are: not with --workers");
  if (flags.check && get<std::int64_t>(td_options_get_i64, options, "processes") > 1)
    throw Failure(exit_usage, "--check runs in one process: not with --processes");
  const Context context = flags.work.context();
  const Plan plan = make_plan(flags, context, options);
  if (!flags.work.json) {
    fmt::print("{}\n", in_flags(text(td_plan_describe, plan)));
    std::fflush(stdout);
  }
  std::vector<Checked> checked;
  if (flags.check)
    checked = check_plan(flags, context, options, plan);
  if (flags.work.json)
    print_json(document(flags, plan, checked));
  else if (flags.check)
    print_checked(checked);
  return exit_ok;
}

} // namespace

Command add_plan(CLI::App &td) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App *app =
      td.add_subcommand("plan", "say what would be done with a tensor, and what memory and time that takes");
  app->add_option("file", flags->file, "tensor: text, .tdb or .npy, also .gz; or give --dims or --like");
  app->add_option("-r,--rank", flags->rank, "components of the model")->required()->check(positive_integer());
  app->add_option("--type", flags->type, "type of a shape's values [f64]")->check(CLI::IsMember({"f32", "f64"}));
  app->add_flag("--check", flags->check, "also store the tensor, run 4 iterations, and compare");
  flags->recipe.add(*app, false);
  flags->work.add(*app, {"tensor", "cpals", "plan", "read", "context"});
  return {app, [flags] { return run_plan(*flags); }};
}

} // namespace cli
