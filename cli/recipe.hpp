// What tensor the command line asks for: the flags of a recipe, shared by the verbs that make tensors.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "planted.hpp"

namespace cli {

struct RecipeFlags {
  std::string dims, like;
  double scale = 1;
  CLI::Option *skew = nullptr;
  std::vector<CLI::Option *> of_entries, of_shape; // flags without use for a dense tensor, or where there is no shape
  Recipe recipe;                                   // as far as flags say it; see wanted()

  /// Leaves out --seed where that is the solver's.
  void add(CLI::App &app, bool with_seed = true);
  /// Whether there is a shape. Throws Failure for flags that say more of one that is not there.
  bool given() const;
  /// The whole recipe. Throws Failure for flags that do not fit together.
  Recipe wanted() const;
  /// "uber", "uber, scale 0.1" or "100x80x60": for people.
  std::string name() const;
};

} // namespace cli
