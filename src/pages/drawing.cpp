#include "pages/drawing.hpp"

#include <algorithm>
#include <cmath>

#include "core/mode_list.hpp"

namespace td::pages {

namespace {

constexpr i64 most_bars = 30;    // more in the width of a phone have no room for what they stand for
constexpr i64 most_points = 400; // about as many as a drawing is wide
constexpr i64 leading_rows = 10;
constexpr i64 least_axis = 16; // rows from which smoothness tells an axis from chance
// The squared steps between neighbours of numbers in no order add up to twice their variance; of a smooth curve to
// nearly nothing. Half the variance is a correlation of 0.75 between neighbours.
constexpr double smooth_steps = 0.5;

double at(ConstMatrix a, i64 i, i64 r) {
  return a.type == ValueType::f32 ? static_cast<double>(a.row<float>(i)[r]) : a.row<double>(i)[r];
}

/// Squared steps between neighbouring rows over the columns' variance, each column as heavy as its component.
double steps_over_variance(ConstMatrix a, std::span<const double> weights) {
  const auto n = static_cast<std::size_t>(a.cols);
  std::vector<double> sum(n), squares(n), steps(n);
  for (i64 i = 0; i < a.rows; ++i) {
    for (std::size_t r = 0; r < n; ++r) {
      const double v = at(a, i, static_cast<i64>(r));
      const double step = i == 0 ? 0 : v - at(a, i - 1, static_cast<i64>(r));
      sum[r] += v;
      squares[r] += v * v;
      steps[r] += step * step;
    }
  }
  const double heaviest =
      *std::max_element(weights.begin(), weights.end(), [](double x, double y) { return std::abs(x) < std::abs(y); });
  double numerator = 0, denominator = 0;
  for (std::size_t r = 0; r < n; ++r) {
    const double weight = heaviest == 0 ? 0 : weights[r] / heaviest;
    numerator += weight * weight * steps[r];
    denominator += weight * weight * std::max(squares[r] - sum[r] * sum[r] / static_cast<double>(a.rows), 0.0);
  }
  return denominator > 0 ? numerator / denominator : 2;
}

/// "2024-03", "2024-03-17" and longer; names of years and other numbers are none.
bool is_date(std::string_view name) {
  const auto digits = [&](std::size_t at, std::size_t n) {
    return name.size() >= at + n &&
           std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at),
                       name.begin() + static_cast<std::ptrdiff_t>(at + n), [](char c) { return c >= '0' && c <= '9'; });
  };
  return digits(0, 4) && name.size() >= 7 && name[4] == '-' && digits(5, 2) &&
         (name.size() == 7 || (name[7] == '-' && digits(8, 2)));
}

/// Whether names are dates that ascend: then rows follow each other in time.
bool are_dates(const LabelList &names) {
  std::string_view before;
  for (i64 i = 0; i < names.size(); ++i) {
    if (!is_date(names[i]) || names[i] <= before)
      return false;
    before = names[i];
  }
  return names.size() > 2;
}

Points leading_of(ConstMatrix a, i64 r) {
  std::vector<i64> rows; // the largest so far, in descending order
  const auto larger = [&](i64 i, i64 j) { return std::abs(at(a, i, r)) > std::abs(at(a, j, r)); };
  for (i64 i = 0; i < a.rows; ++i) {
    if (at(a, i, r) == 0 || (static_cast<i64>(rows.size()) == leading_rows && !larger(i, rows.back())))
      continue;
    rows.insert(std::upper_bound(rows.begin(), rows.end(), i, larger), i);
    if (static_cast<i64>(rows.size()) > leading_rows)
      rows.pop_back();
  }
  Points points;
  for (const i64 i : rows) {
    points.rows.push_back(static_cast<double>(i));
    points.values.push_back(at(a, i, r));
  }
  return points;
}

/// Means of as many ranges of neighbours as there are points.
Points means_of(ConstMatrix a, i64 r) {
  const i64 n = std::min(a.rows, most_points);
  Points points;
  for (i64 k = 0; k < n; ++k) {
    const Range range = part_of({0, a.rows}, k, n);
    double sum = 0;
    for (i64 i = range.begin; i < range.end; ++i)
      sum += at(a, i, r);
    points.rows.push_back(static_cast<double>(range.begin) + 0.5 * static_cast<double>(range.size() - 1));
    points.values.push_back(sum / static_cast<double>(range.size()));
  }
  return points;
}

} // namespace

std::optional<std::vector<int>> line_modes(const Options &options, int order) {
  const std::string text = options.text("line_modes");
  if (text == "auto")
    return std::nullopt;
  if (text == "none")
    return std::vector<int>();
  return parse_modes(text, order, "line_modes", text);
}

Drawing drawing_of(ConstMatrix a, std::span<const double> weights, bool named_line, bool automatic,
                   const LabelList *names) {
  using Kind = Drawing::Kind;
  if (named_line && a.rows > 1)
    return {Kind::line, "option line_modes says that its rows lie along an axis"};
  if (automatic && names != nullptr && are_dates(*names))
    return {Kind::line, "its rows are dates in order"};
  if (automatic && names == nullptr && a.rows >= least_axis && steps_over_variance(a, weights) < smooth_steps)
    return {Kind::line, "neighbouring rows are alike, as along an axis"};
  bool short_names = true;
  for (i64 i = 0; names != nullptr && i < std::min(a.rows, most_bars); ++i)
    short_names = short_names && (*names)[i].size() <= 2;
  if (a.rows <= most_bars && short_names)
    return {Kind::bars, "all rows in order"};
  return {Kind::leading, fmt::format("the {} rows of largest magnitude of each component", leading_rows)};
}

std::vector<Points> points_of(ConstMatrix a, Drawing::Kind kind, i64 shown) {
  std::vector<Points> columns;
  for (i64 r = 0; r < shown; ++r)
    columns.push_back(kind == Drawing::Kind::leading ? leading_of(a, r) : means_of(a, r));
  return columns;
}

} // namespace td::pages
