// What tensor the command line asks for: the flags of a recipe, shared by the verbs that make tensors.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "planted.hpp"

namespace cli {

struct RecipeFlags {
  std::string dims, like;
  double scale = 1;
  CLI::Option *skew = nullptr;
  Recipe recipe; // as far as flags say it; see wanted()

  /// Leaves out --seed where that is the solver's.
  void add(CLI::App &app, bool with_seed = true);
  bool given() const { return !dims.empty() || !like.empty(); }
  /// The whole recipe. Throws Failure for flags that do not fit together.
  Recipe wanted() const;
  /// "uber", "uber, scale 0.1" or "100x80x60": for people.
  std::string name() const;
};

} // namespace cli
