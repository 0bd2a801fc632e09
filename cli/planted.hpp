// Tensors made to order: where entries lie, and a ktensor that explains them.
#pragma once

#include <cstdint>
#include <vector>

#include "entry_arrays.hpp"

namespace cli {

struct Recipe {
  std::vector<std::int64_t> dims;
  std::int64_t entries = 0; // wanted; duplicates dropped or components rounded may make it fewer or more
  std::int64_t rank = 0;    // 0: no ktensor is planted, values are uniform in [1, 2)
  double noise = 0;         // norm of the noise over norm of the planted tensor
  double skew = 0;          // see draw_index
  std::int64_t fiber = 1;   // entries at the same coordinates but for the last mode's; without a rank
  std::uint64_t seed = 0;
  bool dense = false;
};

struct Planted {
  Tensor tensor;
  Ktensor truth; // null without a planted ktensor
};

/// Floor of d * u^(1/(1-skew)) for uniform u: 0 is the most frequent.
std::int64_t draw_index(std::int64_t d, double skew, double u);

/// Without a rank: entries at random coordinates, skewed, those drawn twice dropped; `fiber` entries after one another
/// share all coordinates but the last mode's. With a rank and dense: normal factors. With a rank and sparse: each
/// component lives on a random subset of the slices of each mode, so that the tensor is sparse and yet has that rank
/// exactly; the subsets' sizes give about the entries wanted. Noise is added to stored entries, and scaled to have
/// exactly the norm asked for.
Planted plant(td_context *context, const Recipe &recipe);
/// The tensor's arrays alone, as a caller of td would bring them.
EntryArrays plant_arrays(td_context *context, const Recipe &recipe, td_type type);

} // namespace cli
