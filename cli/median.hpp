// The middle of what was measured.
#pragma once

#include <algorithm>
#include <vector>

namespace cli {

/// The median; of an even count the mean of the two in the middle, of none 0.
inline double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

} // namespace cli
