#include "tensor_facts.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace cli {

std::optional<double> fact(const td_tensor *x, const char *key) {
  double value = 0;
  const td_status status = td_tensor_get_f64(x, key, &value);
  if (status == TD_ERR_NUMERICAL)
    return std::nullopt;
  check(status);
  return value;
}

std::string fact_text(const td_tensor *x, const char *key) {
  const auto value = fact(x, key);
  return value ? fmt::format("{:.15g}", *value) : "beyond the largest number in f64";
}

Json fact_json(const td_tensor *x, const char *key) {
  const auto value = fact(x, key);
  return value ? Json(*value) : Json(nullptr);
}

Json tensor_facts(const td_tensor *x) {
  return {{"order", get<std::int32_t>(td_tensor_order, x)},
          {"dims", dims_of(x)},
          {"entries", get<std::int64_t>(td_tensor_nnz, x)},
          {"type", get<td_type>(td_tensor_type, x) == TD_F32 ? "f32" : "f64"},
          {"sparse", get<std::int64_t>(td_tensor_get_i64, x, "sparse") != 0},
          {"format", text(td_tensor_get_str, x, "format")},
          {"source", text(td_tensor_get_str, x, "source")},
          {"norm", fact_json(x, "norm")}};
}

namespace {

struct SliceCounts {
  std::vector<std::int64_t> nonempty;
  bool first_is_empty;
};

SliceCounts by_counting(const td_tensor *x, std::int32_t mode, std::int64_t dim) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(dim));
  check(td_tensor_slice_counts(x, mode, counts.data()));
  const bool first_is_empty = counts.front() == 0;
  std::erase(counts, 0);
  return {std::move(counts), first_is_empty};
}

/// A mode can be so long that a count for each of its slices would not fit: the entries' coordinates are sorted
/// instead.
SliceCounts by_sorting(const td_tensor *x, std::int32_t mode, std::int64_t entries) {
  std::vector<std::int64_t> coordinates(static_cast<std::size_t>(entries));
  std::vector<void *> indices(static_cast<std::size_t>(get<std::int32_t>(td_tensor_order, x)));
  indices[static_cast<std::size_t>(mode)] = coordinates.data();
  check(td_tensor_get_entries(x, TD_I64, indices.data(), 0, TD_F64, nullptr));
  std::sort(coordinates.begin(), coordinates.end());
  std::vector<std::int64_t> counts;
  for (auto run = coordinates.begin(); run != coordinates.end();) {
    const auto end = std::upper_bound(run, coordinates.end(), *run);
    counts.push_back(end - run);
    run = end;
  }
  return {std::move(counts), coordinates.empty() || coordinates.front() != 0};
}

} // namespace

double skew_of(const std::vector<std::int64_t> &counts, std::int64_t dim) {
  // With slices in descending order, the law puts the share y^(1-s) of the entries on the first y of the slices, so
  // that an entry's mean position is m = (1-s)/(2-s), and s = (1-2m)/(1-m).
  double position = 0, entries = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    position += (static_cast<double>(k) + 0.5) / static_cast<double>(dim) * static_cast<double>(counts[k]);
    entries += static_cast<double>(counts[k]);
  }
  if (entries == 0)
    return 0;
  const double m = std::min(position / entries, 0.5);
  return (1 - 2 * m) / (1 - m);
}

std::vector<Slices> slices(const td_tensor *x) {
  const auto lengths = dims_of(x);
  const auto entries = get<std::int64_t>(td_tensor_nnz, x);
  const bool sparse = get<std::int64_t>(td_tensor_get_i64, x, "sparse") != 0;
  std::vector<Slices> out;
  for (std::int32_t mode = 0; mode < static_cast<std::int32_t>(lengths.size()); ++mode) {
    const auto dim = lengths[static_cast<std::size_t>(mode)];
    // 2^28 counts take 2 GiB; a shorter mode is counted, whatever the number of entries.
    const bool sort = sparse && dim > (std::int64_t{1} << 28) && dim > entries;
    auto [counts, first_is_empty] = sort ? by_sorting(x, mode, entries) : by_counting(x, mode, dim);
    std::sort(counts.begin(), counts.end(), std::greater<>());
    Slices s;
    s.dim = dim;
    s.nonempty = static_cast<std::int64_t>(counts.size());
    s.first_is_empty = first_is_empty;
    if (!counts.empty()) {
      s.smallest = counts.back();
      s.median = counts[counts.size() / 2];
      s.largest = counts.front();
    }
    s.skew = skew_of(counts, dim);
    out.push_back(s);
  }
  return out;
}

} // namespace cli
