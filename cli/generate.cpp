// td generate: tensors made to order, for tests and measurements.
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "planted.hpp"
#include "tensor_facts.hpp"

namespace cli {

namespace {

/// Shapes and entries of tensors of the FROSTT collection (Smith et al., frostt.io, 2017), in its order of modes.
struct Like {
  const char *name;
  std::vector<std::int64_t> dims;
  std::int64_t entries;
};

const std::vector<Like> &likes() {
  static const std::vector<Like> all = {
      {"uber", {183, 24, 1140, 1717}, 3309490},
      {"nips", {2482, 2862, 14036, 17}, 3101609},
      {"chicago", {6186, 24, 77, 32}, 5330673},
      {"lbnl", {1605, 4198, 1631, 4209, 868131}, 1698825},
      {"vast", {165427, 11374, 2}, 26021854},
      {"enron", {6066, 5699, 244268, 1176}, 54202099},
      {"nell2", {12092, 9184, 28818}, 76879419},
      {"nell1", {2902330, 2143368, 25495389}, 143599552},
      {"flickr", {319686, 28153045, 1607191, 731}, 112890310},
      {"delicious", {532924, 17262471, 2480308, 1443}, 140126181},
  };
  return all;
}

std::string like_names() {
  std::string names;
  for (const Like &like : likes())
    names += (names.empty() ? "" : ", ") + std::string(like.name);
  return names;
}

struct GenerateFlags {
  std::string out, dims, like, model;
  double scale = 1;
  CLI::Option *skew = nullptr;
  Recipe recipe;
  WorkFlags work;
};

/// "100x80x60"; also with commas.
std::vector<std::int64_t> parse_dims(const std::string &given) {
  std::vector<std::int64_t> out;
  const char *at = given.data(), *end = at + given.size();
  while (true) {
    std::int64_t d = 0;
    const auto [stop, error] = std::from_chars(at, end, d);
    // Below 2^32, so that a product of two coordinates fits 64 bits where they are scattered.
    if (error != std::errc{} || d < 1 || d >= std::int64_t{1} << 32)
      throw Failure(exit_usage,
                    fmt::format("--dims {}: expected whole numbers from 1 to 2^32 - 1 as in 100x80x60", given));
    out.push_back(d);
    if (stop == end)
      return out;
    if (*stop != 'x' && *stop != ',')
      throw Failure(exit_usage, fmt::format("--dims {}: unexpected '{}'; expected as in 100x80x60", given, *stop));
    at = stop + 1;
  }
}

Recipe recipe_of(const GenerateFlags &flags) {
  Recipe recipe = flags.recipe;
  if (flags.like.empty() == flags.dims.empty())
    throw Failure(exit_usage, "give either --dims or --like");
  if (!flags.dims.empty())
    recipe.dims = parse_dims(flags.dims);
  for (const Like &like : likes())
    if (like.name == flags.like) {
      recipe.dims = like.dims;
      if (recipe.entries == 0)
        recipe.entries = like.entries;
      if (flags.skew->count() == 0)
        recipe.skew = 0.5; // what the measurements in docs and bench use
    }
  if (recipe.dims.empty())
    throw Failure(exit_usage, fmt::format("--like {}: expected one of {}", flags.like, like_names()));
  if (recipe.entries == 0 && !recipe.dense)
    throw Failure(exit_usage, "give --nnz, or --dense");
  recipe.entries =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(flags.scale * static_cast<double>(recipe.entries)));
  if (!flags.model.empty() && recipe.rank == 0)
    throw Failure(exit_usage, "--model needs --rank: without one no ktensor is planted");
  return recipe;
}

int run_generate(const GenerateFlags &flags) {
  const Recipe recipe = recipe_of(flags);
  const Options options = flags.work.table.options();
  const Context context = flags.work.context();
  const Planted planted = plant(context.get(), recipe);
  check(td_tensor_write(planted.tensor.get(), flags.out.c_str(), options.get()));
  if (!flags.model.empty())
    check(td_ktensor_write(planted.truth.get(), flags.model.c_str(), nullptr));
  if (flags.work.json)
    fmt::print("{}\n", Json({{"file", flags.out}, {"tensor", tensor_facts(planted.tensor.get())}}).dump(2));
  else if (!flags.work.quiet)
    fmt::print("wrote {}: {}\n", flags.out, text(td_tensor_describe, planted.tensor.get()));
  return exit_ok;
}

} // namespace

Command add_generate(CLI::App &td) {
  auto flags = std::make_shared<GenerateFlags>();
  Recipe &recipe = flags->recipe;
  CLI::App *app = td.add_subcommand("generate", "make a tensor: planted factors and noise, or random entries");
  app->add_option("out", flags->out, "file to write: .tns, .txt, .tdb, .npy (dense)")->required();
  app->add_option("--dims", flags->dims, "dimensions, as in 100x80x60");
  app->add_option("--like", flags->like, "shape and entries of a FROSTT tensor: " + like_names());
  app->add_option("--nnz", recipe.entries, "entries to draw; those drawn twice are dropped")
      ->check(CLI::PositiveNumber);
  app->add_option("--scale", flags->scale, "multiply the number of entries (not the dimensions) by this [1]")
      ->check(CLI::PositiveNumber);
  app->add_option("-r,--rank", recipe.rank, "plant a ktensor of this rank; without it values are uniform in [1, 2)")
      ->check(CLI::PositiveNumber);
  app->add_option("--noise", recipe.noise, "norm of added normal noise, relative to the tensor's norm [0]")
      ->check(CLI::NonNegativeNumber);
  flags->skew = app->add_option("--skew", recipe.skew,
                                "entries gather in few slices: index = dim * u^(1/(1-skew)), then scattered "
                                "[0; 0.5 with --like]")
                    ->check(CLI::Range(0.0, 0.99));
  app->add_option("--seed", recipe.seed, "the same seed gives the same tensor [0]");
  app->add_flag("--dense", recipe.dense, "a dense tensor");
  app->add_option("--model", flags->model, "write the planted ktensor here");
  flags->work.add(*app, {"write", "context"});
  return {app, [flags] { return run_generate(*flags); }};
}

} // namespace cli
