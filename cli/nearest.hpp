// The word that somebody may have meant.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli {

/// Letters to change, add or leave out.
inline std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// " (did you mean 'word'?)", or nothing where no word is near.
inline std::string did_you_mean(std::string_view written, const std::vector<std::string> &words) {
  const std::string *best = nullptr;
  std::size_t least = (written.size() + 1) / 2 + 1; // two letters changed places count as two
  for (const std::string &word : words)
    if (const std::size_t edits = edits_between(written, word); edits < least) {
      least = edits;
      best = &word;
    }
  return best == nullptr ? "" : " (did you mean '" + *best + "'?)";
}

} // namespace cli
