// Tensors of known rank.
#pragma once

#include "support/oracle.hpp"

namespace tdtest {

struct Planted {
  Factors factors;
  std::vector<double> weights;
  Entries entries; // the nonzero cells of the model plus noise
};

/// Factor entries uniform in [0, 1), of which the fraction `zeros` is 0; then noise in (-1, 1) times `noise` added to
/// the nonzero cells.
Planted planted(Random &random, const std::vector<int64_t> &dims, int64_t rank, double zeros, double noise);

} // namespace tdtest
