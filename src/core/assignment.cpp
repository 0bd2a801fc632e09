#include "core/assignment.hpp"

#include <algorithm>
#include <limits>

namespace td {

// Kuhn's Hungarian method in the form of shortest augmenting paths with potentials (Jonker and Volgenant, Computing
// 38, 1987). Cost is minus benefit. Index 0 stands for "no row" and "no column"; rows and columns count from 1.
std::vector<i64> best_assignment(std::span<const double> benefit, i64 rows, i64 cols) {
  const auto n = static_cast<std::size_t>(rows);
  const auto m = static_cast<std::size_t>(cols);
  constexpr double far = std::numeric_limits<double>::infinity();

  std::vector<double> row_potential(n + 1, 0.0);
  std::vector<double> col_potential(m + 1, 0.0);
  std::vector<std::size_t> row_of(m + 1, 0); // the row that each column is matched to
  std::vector<std::size_t> previous(m + 1, 0);
  std::vector<double> distance(m + 1);
  std::vector<char> visited(m + 1);

  for (std::size_t row = 1; row <= n; ++row) {
    std::fill(distance.begin(), distance.end(), far);
    std::fill(visited.begin(), visited.end(), char{0});
    row_of[0] = row;
    std::size_t column = 0;
    do { // Dijkstra from the new row until a free column is nearest
      visited[column] = 1;
      const std::size_t from = row_of[column];
      double step = far;
      std::size_t next = 0;
      for (std::size_t j = 1; j <= m; ++j) {
        if (visited[j])
          continue;
        const double reduced = -benefit[(from - 1) * m + (j - 1)] - row_potential[from] - col_potential[j];
        if (reduced < distance[j]) {
          distance[j] = reduced;
          previous[j] = column;
        }
        if (distance[j] < step) {
          step = distance[j];
          next = j;
        }
      }
      for (std::size_t j = 0; j <= m; ++j) {
        if (visited[j]) {
          row_potential[row_of[j]] += step;
          col_potential[j] -= step;
        } else {
          distance[j] -= step;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    while (column != 0) { // turn the path over
      row_of[column] = row_of[previous[column]];
      column = previous[column];
    }
  }

  std::vector<i64> column_of(n, 0);
  for (std::size_t j = 1; j <= m; ++j) {
    if (row_of[j] != 0)
      column_of[row_of[j] - 1] = static_cast<i64>(j) - 1;
  }
  return column_of;
}

} // namespace td
