// td bench: how fast td works on this machine, and how far that is from what the machine can do.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "commands.hpp"
#include "figures.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "recipe.hpp"
#include "scratch_folder.hpp"

namespace cli {

namespace {

struct BenchFlags {
  std::vector<std::string> files, what;
  std::string type;
  bool shuffle = false;
  RecipeFlags recipe;
  Wish wish;
  WorkFlags work;
};

Wish wish_of(const BenchFlags &flags) {
  Wish wish = flags.wish;
  if (wish.ranks.empty())
    wish.ranks = {16, 32};
  if (flags.what.empty())
    return wish;
  const auto wanted = [&](const char *name) {
    return std::find(flags.what.begin(), flags.what.end(), name) != flags.what.end();
  };
  wish.mttkrp = wanted("mttkrp");
  wish.iteration = wanted("iteration");
  wish.build = wanted("build");
  wish.read = wanted("read");
  return wish;
}

/// What a context works with is in the report of a run: one iteration on the smallest tensor.
int threads_of(td_context *context) {
  const std::int64_t dims[] = {1, 1};
  const double one = 1;
  const Tensor x = make<Tensor>(td_tensor_create_dense, context, 2, dims, nullptr, TD_F64, &one, TD_HOST, nullptr);
  const Fitted run = cpals(context, x, 1, Options{{"max_iters", "1"}});
  return static_cast<int>(get<std::int64_t>(td_report_get_i64, run.report, "threads"));
}

/// The arrays of a file's tensor, or of what the recipe makes if the name of the file is empty.
EntryArrays arrays_of(const BenchFlags &flags, td_context *context, const td_options *options,
                      const std::string &file) {
  const std::string wanted = text(td_options_get_str, options, "value_type");
  if (file.empty())
    return plant_arrays(context, flags.recipe.wanted(), wanted == "f32" ? TD_F32 : TD_F64);
  const Tensor x = make<Tensor>(td_tensor_read, context, file.c_str(), options);
  return {x, wanted == "auto" ? get<td_type>(td_tensor_type, x) : wanted == "f32" ? TD_F32 : TD_F64};
}

Figures figures_of(const BenchFlags &flags, td_context *context, const td_options *options, const std::string &file,
                   const Wish &wish, const Limits &limits) {
  EntryArrays arrays = arrays_of(flags, context, options, file);
  if (flags.shuffle)
    arrays.shuffle();
  Figures out = measure(context, options, std::move(arrays), wish, limits);
  out.name = file.empty() ? flags.recipe.name() : file;
  return out;
}

/// Files and folders that are not there are refused before the machine is measured, which takes seconds.
void refuse_missing(const std::vector<std::string> &files, const Wish &wish) {
  for (const std::string &file : files)
    if (access(file.c_str(), R_OK) != 0)
      throw Failure(exit_input, fmt::format("{}: cannot be opened: {}", file, std::generic_category().message(errno)));
  if (wish.read)
    ScratchFolder{wish.scratch};
}

int run_bench(const BenchFlags &flags) {
  std::vector<std::string> names = flags.files;
  if (flags.recipe.given()) {
    flags.recipe.wanted(); // refuse it before anything is measured
    names.emplace_back();
  }
  if (names.empty())
    throw Failure(exit_usage, "give files, or --like or --dims");
  const Wish wish = wish_of(flags);
  refuse_missing(flags.files, wish);
  Options options = flags.work.table.options();
  if (!flags.type.empty())
    options.set("value_type", flags.type);
  const Context context = flags.work.context();
  const InterruptGuard guard;
  const Machine machine = measure_machine(threads_of(context));
  const Limits limits = limits_of(context, machine);
  const std::string devices = text(td_context_describe, context);
  if (!flags.work.json)
    fmt::print("machine   {}\ndevices   {}{}\nmedians   of {} repeats\n", machine.describe(), devices,
               limits.gpu ? fmt::format("; reads {:.1f} GB/s, by which floors are predicted", limits.read / 1e9) : "",
               wish.repeats);
  Json tensors = Json::array();
  for (const std::string &name : names) {
    std::fflush(stdout);
    const Figures figures = figures_of(flags, context, options, name, wish, limits);
    if (flags.work.json)
      tensors.push_back(figures.document(wish));
    else
      figures.print(wish);
  }
  if (flags.work.json)
    print_json(Json({{"machine", machine.document()},
                     {"devices", devices},
                     {"floors_by",
                      {{"read_bytes_per_second", limits.read},
                       {"f64_operations_per_second", limits.f64},
                       {"f32_operations_per_second", limits.f32}}},
                     {"repeats", wish.repeats},
                     {"options", flags.work.table.given()},
                     {"tensors", tensors}}));
  return exit_ok;
}

} // namespace

Command add_bench(CLI::App &td) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App *app =
      td.add_subcommand("bench", "measure how fast td works, and how far that is from the machine's limits");
  app->add_option("files", flags->files, "tensors: text, .tdb or .npy, also .gz");
  app->add_option("-r,--rank", flags->wish.ranks, "ranks, as in 16,32 [16,32]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(positive_integer());
  app->add_option("--repeats", flags->wish.repeats, "times that each thing is measured; medians are shown [5]")
      ->check(positive_integer());
  app->add_option("--what", flags->what, "what to measure, as in mttkrp,build [all]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"mttkrp", "iteration", "build", "read"}));
  app->add_option("--type", flags->type, "as --value-type, also for a tensor that is made here")
      ->check(CLI::IsMember({"f32", "f64"}));
  app->add_flag("--shuffle", flags->shuffle, "build from entries in random order, not in td's own");
  app->add_option("--scratch", flags->wish.scratch, "folder for the files that are read [that for temporary files]");
  flags->recipe.add(*app);
  flags->work.add(*app, {"tensor", "read", "context"});
  return {app, [flags] { return run_bench(*flags); }};
}

} // namespace cli
