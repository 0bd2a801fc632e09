// td generate: tensors made to order, for tests and measurements.
#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "output.hpp"
#include "recipe.hpp"
#include "tensor_facts.hpp"
#include "trial.hpp"

namespace cli {

namespace {

struct GenerateFlags {
  std::string out, model;
  RecipeFlags recipe;
  WorkFlags work;
};

int run_generate(const GenerateFlags &flags) {
  const Recipe recipe = flags.recipe.wanted();
  if (!flags.model.empty() && recipe.rank == 0)
    throw Failure(exit_usage, "--model needs --rank: without one no ktensor is planted");
  refuse_overwriting({}, {flags.out, flags.model});
  const Options options = flags.work.table.options();
  require(try_tensor(flags.out, !recipe.dense, options));
  require(try_ktensor(flags.model, static_cast<std::int32_t>(recipe.dims.size()), nullptr));
  const Context context = flags.work.context();
  const Planted planted = plant(context, recipe);
  check(td_tensor_write(planted.tensor, flags.out.c_str(), options));
  if (!flags.model.empty())
    check(td_ktensor_write(planted.truth, flags.model.c_str(), nullptr));
  if (flags.work.json)
    print_json(Json({{"file", flags.out}, {"tensor", tensor_facts(planted.tensor)}}));
  else if (!flags.work.quiet)
    fmt::print("wrote {}: {}\n", shown(flags.out), text(td_tensor_describe, planted.tensor));
  return exit_ok;
}

} // namespace

Command add_generate(CLI::App &td) {
  auto flags = std::make_shared<GenerateFlags>();
  Recipe &recipe = flags->recipe.recipe;
  CLI::App *app = td.add_subcommand("generate", "make a tensor: planted factors and noise, or random entries");
  app->add_option("out", flags->out, "file to write: .tns, .txt, .tdb, .npy (dense)")->required();
  flags->recipe.add(*app);
  app->add_option("-r,--rank", recipe.rank, "plant a ktensor of this rank; without it values are uniform in [1, 2)")
      ->check(positive_integer());
  app->add_option("--noise", recipe.noise, "norm of added normal noise, relative to the tensor's norm [0]")
      ->check(nonnegative_number());
  app->add_option("--model", flags->model, "write the planted ktensor here");
  flags->work.add(*app, {"write", "context"});
  return {app, [flags] { return run_generate(*flags); }};
}

} // namespace cli
