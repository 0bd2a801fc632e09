// Times that MTTKRP cannot come below on a machine.
#pragma once

#include <vector>

#include "machine.hpp"

namespace cli {

/// Rates of what a context works on, a second: the host, or a GPU.
struct Limits {
  double read = 0;         // bytes from memory
  double f64 = 0, f32 = 0; // operations
  bool gpu = false;
};
/// A GPU's limits are those that a plan tells; the host's were measured.
Limits limits_of(td_context *context, const Machine &host);

/// What one mode cannot do without.
struct Floor {
  double bytes = 0;      // that move
  double operations = 0; // where arithmetic counts: dense tensors
  double seconds = 0;    // of the longer of the two
};

/// The floors of the modes of a tensor as it is stored.
class Floors {
public:
  Floors(const td_tensor *x, const Limits &limits);
  std::vector<Floor> of(std::int64_t rank) const;

private:
  double stored_bytes_;      // that a mode reads
  double element_;           // bytes of a value
  double operations_;        // a column
  std::vector<double> rows_; // that are written, a mode
  double bandwidth_, rate_;
};

} // namespace cli
