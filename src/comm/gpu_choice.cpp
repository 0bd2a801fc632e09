#include "comm/gpu_choice.hpp"

#include <algorithm>
#include <map>

namespace td {

int choose_gpu(Processes &processes, const std::vector<i64> &may, bool shared) {
  double most = static_cast<double>(may.size());
  processes.all_reduce({&most, 1}, Reduction::max);
  std::vector<i64> mine(may);
  mine.resize(static_cast<std::size_t>(most), 0);
  if (mine.empty())
    return -1;
  const std::vector<i64> all = processes.all_gather(mine);
  std::map<i64, int> taken; // how often
  for (int process = 0;; ++process) {
    const auto begin = all.begin() + process * std::ssize(mine);
    const auto end = std::find(begin, begin + std::ssize(mine), 0);
    const auto first = std::min_element(begin, end, [&](i64 a, i64 b) { return taken[a] < taken[b]; });
    const bool gets = first != end && (shared || taken[*first] == 0);
    if (process == processes.rank())
      return gets ? static_cast<int>(first - begin) : -1;
    if (gets)
      ++taken[*first];
  }
}

} // namespace td
