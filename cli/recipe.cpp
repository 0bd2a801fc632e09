#include "recipe.hpp"

#include <charconv>

#include <fmt/format.h>

#include "flags.hpp"

namespace cli {

namespace {

/// Shapes and entries of tensors of the FROSTT collection (Smith et al., frostt.io, 2017), in its order of modes, and
/// of Twitch (Rappaz, McAuley and Aberer, RecSys 2021) as a tensor of AMPED's measurements (Wijeratne et al., 2025).
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
      {"amazon", {4821207, 1774269, 1805187}, 1741809018},
      {"patents", {46, 239172, 239172}, 3596640708},
      {"reddit", {8211298, 176962, 8116559}, 4687474081},
      {"twitch", {15524309, 6161666, 783865, 6103, 6103}, 474676555},
  };
  return all;
}

std::string like_names() {
  std::string names;
  for (const Like &like : likes())
    names += (names.empty() ? "" : ", ") + std::string(like.name);
  return names;
}

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
    if (stop == end && (out.size() < 2 || out.size() > 64))
      throw Failure(exit_usage,
                    fmt::format("--dims {}: {} of them; expected 2 to 64 as in 100x80x60", given, out.size()));
    if (stop == end)
      return out;
    if (*stop != 'x' && *stop != ',')
      throw Failure(exit_usage, fmt::format("--dims {}: unexpected '{}'; expected as in 100x80x60", given, *stop));
    at = stop + 1;
  }
}

void check_fibers(const Recipe &recipe) {
  if (recipe.fiber == 1)
    return;
  if (recipe.rank > 0)
    throw Failure(exit_usage, "--fiber says how random entries lie: not with --rank");
  if (recipe.fiber > recipe.dims.back())
    throw Failure(exit_usage,
                  fmt::format("--fiber {}: expected at most the last dimension, {}", recipe.fiber, recipe.dims.back()));
}

/// Refuses the flags of a list that were given.
void refuse_given(const std::vector<CLI::Option *> &flags, std::string_view reason) {
  for (const CLI::Option *flag : flags)
    if (flag->count() > 0)
      throw Failure(exit_usage, fmt::format("{} {}", flag->get_name(), reason));
}

} // namespace

void RecipeFlags::add(CLI::App &app, bool with_seed) {
  app.add_option("--dims", dims, "dimensions, as in 100x80x60");
  app.add_option("--like", like, "shape and entries of a known tensor: " + like_names());
  CLI::Option *nnz = app.add_option("--nnz", recipe.entries, "entries to draw; those drawn twice are dropped");
  CLI::Option *scaled =
      app.add_option("--scale", scale, "multiply the number of entries (not the dimensions) by this [1]");
  skew = app.add_option("--skew", recipe.skew,
                        "entries gather in few slices: index = dim * u^(1/(1-skew)), then scattered "
                        "[0; 0.5 with --like]")
             ->check(CLI::Range(0.0, 0.99));
  CLI::Option *fiber =
      app.add_option("--fiber", recipe.fiber,
                     "entries come in runs of so many along the last mode, at the same other coordinates [1]");
  of_entries = {nnz->check(positive_integer()), scaled->check(positive_number()), skew,
                fiber->check(positive_integer())};
  of_shape = of_entries;
  if (with_seed)
    of_shape.push_back(app.add_option("--seed", recipe.seed, "the same seed gives the same tensor [0]"));
  of_shape.push_back(app.add_flag("--dense", recipe.dense, "a dense tensor"));
}

bool RecipeFlags::given() const {
  const bool shape = !dims.empty() || !like.empty();
  if (!shape)
    refuse_given(of_shape, "says more of a shape: give --dims or --like");
  return shape;
}

Recipe RecipeFlags::wanted() const {
  Recipe out = recipe;
  if (like.empty() == dims.empty())
    throw Failure(exit_usage, "give either --dims or --like");
  if (!dims.empty())
    out.dims = parse_dims(dims);
  for (const Like &one : likes())
    if (one.name == like) {
      out.dims = one.dims;
      if (out.entries == 0)
        out.entries = one.entries;
      if (skew->count() == 0)
        out.skew = 0.5; // what the measurements in docs and bench use
    }
  if (out.dims.empty())
    throw Failure(exit_usage, fmt::format("--like {}: expected one of {}", like, like_names()));
  if (out.dense)
    refuse_given(of_entries, "says what entries a sparse tensor has: not with --dense");
  if (out.entries == 0 && !out.dense)
    throw Failure(exit_usage, "give --nnz, or --dense");
  out.entries = std::max<std::int64_t>(1, static_cast<std::int64_t>(scale * static_cast<double>(out.entries)));
  check_fibers(out);
  return out;
}

std::string RecipeFlags::name() const {
  const std::string shape = like.empty() ? dims : like;
  return scale == 1 ? shape : fmt::format("{}, scale {}", shape, scale);
}

} // namespace cli
