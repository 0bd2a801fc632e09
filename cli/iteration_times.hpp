// How long the iterations of a run of CP-ALS took. The first, which warms caches and maps memory, is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "handles.hpp"

namespace cli {

/// A number for each `period` of neighbouring iterations: their mean. Where partial products of a dense tensor serve
/// several sweeps, these read it in turn, and only a whole period tells what one takes.
struct IterationTimes {
  IterationTimes(const td_report *report, std::int64_t period);

  std::vector<std::vector<double>> mttkrp; // of each mode
  std::vector<double> iteration;
};

/// Iterations for IterationTimes to hold `count` numbers.
constexpr std::int64_t iterations_for(std::int64_t count, std::int64_t period) { return count * period + 1; }

} // namespace cli
