// CP-ALS.
#pragma once

#include "solvers/driver.hpp"

namespace td::solvers {

RunResult cpals(const RunRequest &request);

} // namespace td::solvers
