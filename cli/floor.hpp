// Times that MTTKRP cannot come below on a machine.
#pragma once

#include <vector>

#include "machine.hpp"

namespace cli {

/// What one mode cannot do without.
struct Floor {
  double bytes = 0;      // that move
  double operations = 0; // where arithmetic counts: dense tensors
  double seconds = 0;    // of the longer of the two
};

/// The floors of the modes of a tensor as it is stored.
class Floors {
public:
  Floors(const td_tensor *x, const Machine &machine);
  std::vector<Floor> of(std::int64_t rank) const;

private:
  double stored_bytes_;      // that a mode reads
  double element_;           // bytes of a value
  double operations_;        // a column
  std::vector<double> rows_; // that are written, a mode
  double bandwidth_, rate_;
};

} // namespace cli
