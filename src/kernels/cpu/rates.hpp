// What this machine can do, measured with the loops that the kernels are made of.
#pragma once

#include "kernels/tuning.hpp"

namespace td::kernels::cpu {

/// On so many threads at once. Measured when first asked for, in less than a tenth of a second, and kept; not known
/// while too little memory is free for rows that no cache holds.
Rates measured_rates(int threads);

} // namespace td::kernels::cpu
