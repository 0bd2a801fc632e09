#include "plan/process_part.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace td::plan {

namespace {

struct Interval {
  double begin = 0;
  double end = 0;
  double size() const noexcept { return end - begin; }
};

/// Processes that share a box of index space.
struct Box {
  int count = 1;
  double entries = 0;
  std::vector<Interval> modes;
};

constexpr double most_off = 0.01; // of a process's entries, by which a cut may miss: as in tensor/entry_partition

/// Cuts the longest mode so that each side has its part of the entries. A row that has too many is on both sides.
std::pair<Box, Box> halves(const Box &box) {
  std::size_t mode = 0;
  const auto extent = [&](std::size_t m) { return std::min(box.modes[m].size(), box.entries); };
  for (std::size_t m = 1; m < box.modes.size(); ++m)
    if (extent(m) > extent(mode))
      mode = m;
  Box left = box, right = box;
  left.count = box.count / 2;
  right.count = box.count - left.count;
  const Interval whole = box.modes[mode];
  const double before = static_cast<double>(left.count) / box.count;
  left.entries = before * box.entries;
  right.entries = box.entries - left.entries;
  const double cut = whole.begin + before * whole.size();
  const double off = std::abs(cut - std::round(cut)) * box.entries / whole.size();
  const bool in_row = off > most_off * box.entries / box.count;
  left.modes[mode].end = in_row ? std::ceil(cut) : std::max(std::round(cut), whole.begin + 1);
  right.modes[mode].begin = in_row ? std::floor(cut) : std::min(std::round(cut), whole.end - 1);
  return {std::move(left), std::move(right)};
}

std::vector<Box> boxes_of(std::span<const i64> dims, i64 nnz, int processes) {
  Box whole{processes, static_cast<double>(nnz), {}};
  for (const i64 dim : dims)
    whole.modes.push_back({0, static_cast<double>(dim)});
  std::vector<Box> boxes{std::move(whole)};
  while (std::any_of(boxes.begin(), boxes.end(), [](const Box &b) { return b.count > 1; })) {
    std::vector<Box> next;
    for (Box &box : boxes) {
      if (box.count == 1) {
        next.push_back(std::move(box));
        continue;
      }
      auto [left, right] = halves(box);
      next.push_back(std::move(left));
      next.push_back(std::move(right));
    }
    boxes = std::move(next);
  }
  return boxes;
}

/// Sums over a mode's rows, which boxes have in common from one end of an interval to the next.
struct ModeSums {
  double touched = 0;  // rows, once for each process that has them
  double distinct = 0; // rows that any process has
  double pairs = 0;    // of processes whose intervals meet, each twice
};

ModeSums sums_over(const std::vector<Box> &boxes, std::size_t mode) {
  struct End {
    double at;
    double touches; // of a row, by the entries of a box: the mean number; the probability is that of at least one
    int opens;      // 1, or -1
  };
  std::vector<End> ends;
  for (const Box &box : boxes) {
    const Interval i = box.modes[mode];
    const double touches = box.entries / i.size();
    ends.push_back({i.begin, touches, 1});
    ends.push_back({i.end, touches, -1});
  }
  std::sort(ends.begin(), ends.end(),
            [](const End &a, const End &b) { return a.at < b.at || (a.at == b.at && a.opens < b.opens); });
  ModeSums sums;
  double probabilities = 0, touches = 0, open = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    if (ends[k].opens > 0)
      sums.pairs += 2 * open;
    open += ends[k].opens;
    probabilities -= ends[k].opens * std::expm1(-ends[k].touches);
    touches += ends[k].opens * ends[k].touches;
    const double rows = k + 1 < ends.size() ? ends[k + 1].at - ends[k].at : 0;
    sums.touched += rows * probabilities;
    sums.distinct += rows * -std::expm1(-touches);
  }
  return sums;
}

} // namespace

ProcessPart even_part(std::span<const i64> dims, i64 nnz, int processes) {
  const std::vector<Box> boxes = boxes_of(dims, nnz, processes);
  ProcessPart part{processes, static_cast<double>(nnz), {}, {}, {}};
  for (std::size_t m = 0; m < dims.size(); ++m) {
    const ModeSums sums = sums_over(boxes, m);
    part.rows.push_back(sums.touched / processes);
    part.lent.push_back(std::max(0.0, sums.touched - sums.distinct) / processes);
    part.partners.push_back(std::min(sums.pairs / processes, std::ceil(part.lent.back())));
  }
  return part;
}

} // namespace td::plan
