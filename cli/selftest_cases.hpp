// The self-test's cases: published numbers and identities that hold on every machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "handles.hpp"

namespace cli {

struct Case {
  const char *name;
  const char *source;                    // where the expected numbers come from
  std::function<void(td_context *)> run; // throws what came and what was expected
};

const std::vector<Case> &selftest_cases();

} // namespace cli
