// Partitions of a tensor's modes, as option "groups" writes them.
#pragma once

#include <string>
#include <vector>

namespace tdtest {

/// Every cut of the modes into two groups, and of order 6 one into three and one with modes alone, in no order.
inline std::vector<std::string> partitions(int order) {
  std::vector<std::string> all;
  for (int cut = 1; cut < order; ++cut) {
    std::string text = "0";
    for (int m = 1; m < order; ++m)
      text += (m == cut ? "|" : ",") + std::to_string(m);
    all.push_back(text);
  }
  if (order == 6)
    all.insert(all.end(), {"0,1|2,3|4,5", "5|1,2,3|0|4"});
  return all;
}

/// Partitions of a sparse tensor's modes: a mode alone and the others merged, one that goes on from the last mode to
/// the first among them, and of order 5 two merged pairs.
inline std::vector<std::string> sparse_partitions(int order) {
  std::vector<std::string> all;
  for (int alone = 0; alone < order; ++alone) {
    std::string text = std::to_string(alone) + "|";
    for (int k = 1; k < order; ++k)
      text += (k > 1 ? "," : "") + std::to_string((alone + k) % order);
    all.push_back(text);
  }
  if (order == 5)
    all.emplace_back("4,0|1,2|3");
  return all;
}

} // namespace tdtest
