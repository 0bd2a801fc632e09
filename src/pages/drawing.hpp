// How the columns of a factor are drawn, and the numbers that it takes.
#pragma once

#include <optional>

#include "pages/run.hpp"

namespace td::pages {

/// Components that are drawn: the first ones.
inline constexpr i64 most_components = 64;

struct Drawing {
  enum class Kind {
    bars,    // all rows in order
    line,    // rows lie along an axis, as time and space do; of many, the mean of neighbours
    leading, // the rows of largest magnitude
  };
  Kind kind = Kind::bars;
  std::string why;
};

/// Modes that option "line_modes" names; nothing where it is "auto".
std::optional<std::vector<int>> line_modes(const Options &options, int order);

/// `a` has columns of length 1 or 0; `weights` are those of the components; rows may have no names (null).
Drawing drawing_of(ConstMatrix a, std::span<const double> weights, bool named_line, bool automatic,
                   const LabelList *names);

/// Rows and their numbers in one column.
struct Points {
  std::vector<double> rows; // whole numbers but where neighbours were merged
  std::vector<double> values;
};

/// The points of the columns [0, shown) of a factor.
std::vector<Points> points_of(ConstMatrix a, Drawing::Kind kind, i64 shown);

} // namespace td::pages
