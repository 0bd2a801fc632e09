// What the machine can do: the measure that measured times are held against. The host's rates are measured here, by
// other loops than a plan's: were a plan's taken, a rate that it has wrong would be wrong in floor and prediction
// alike. A GPU's are the plan's, since td's backend alone has CUDA.
#pragma once

#include <cstdint>
#include <string>

#include "flags.hpp"

namespace cli {

struct Machine {
  int threads = 1;
  int repeats = 0;                      // every figure is the median of so many
  std::string instructions;             // see loops::instructions
  std::int64_t bytes = 0;               // memory that was read, written and copied
  double read = 0, write = 0, copy = 0; // bytes a second; copied bytes count once
  double f64 = 0, f32 = 0;              // operations a second, of multiply-adds in registers

  Json document() const;
  std::string describe() const;
};

/// Measures on so many threads at once; less than a second or two.
Machine measure_machine(int threads);

} // namespace cli
