#include "components.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "output.hpp"

namespace cli {

namespace {

struct Entry {
  std::string label;
  std::int64_t index;
  double value;
};

std::int32_t order_of(const td_ktensor *model) {
  std::int32_t order = 0;
  check(td_ktensor_shape(model, &order, nullptr, nullptr, nullptr));
  return order;
}

bool mode_has_labels(const td_ktensor *model, std::int32_t mode) {
  std::int64_t bytes = 0;
  check(td_ktensor_get_labels(model, mode, nullptr, 0, &bytes));
  return bytes > 0;
}

std::vector<Entry> leading(const td_ktensor *model, std::int32_t mode, std::int64_t component, std::int64_t most) {
  const bool labelled = mode_has_labels(model, mode);
  std::vector<std::int64_t> indices(
      static_cast<std::size_t>(std::min(most, dims_of(model)[static_cast<std::size_t>(mode)])));
  std::vector<double> values(indices.size());
  std::int64_t found = 0;
  check(td_ktensor_get_leading(model, mode, component, static_cast<std::int64_t>(indices.size()), indices.data(),
                               values.data(), &found));
  std::vector<Entry> entries;
  for (std::size_t k = 0; k < static_cast<std::size_t>(found); ++k)
    entries.push_back({labelled ? text(td_ktensor_get_label, model, mode, indices[k]) : fmt::format("#{}", indices[k]),
                       indices[k], values[k]});
  return entries;
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

/// Text in a column of `width` characters and two blanks, cut if it is longer.
std::string cell(std::string text, std::size_t width) {
  if (characters(text) > width) {
    constexpr std::string_view dots = "...";
    while (characters(text) > width - dots.size() || continues_character(text.back()))
      text.pop_back();
    text += dots;
  }
  return text + std::string(width + 2 - characters(text), ' ');
}

/// The labels of entries of one sign, one after the other.
std::string names_of(const std::vector<Entry> &entries, bool negative) {
  constexpr double leading_part = 0.25;
  std::string names;
  for (const Entry &e : entries)
    if ((e.value < 0) == negative && std::abs(e.value) >= leading_part * std::abs(entries.front().value))
      names += (names.empty() ? "" : "; ") + (e.label.empty() ? "''" : shown(e.label));
  return names;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

} // namespace

std::vector<std::int64_t> dims_of(const td_ktensor *model) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(order_of(model)));
  check(td_ktensor_shape(model, nullptr, dims.data(), nullptr, nullptr));
  return dims;
}

bool has_labels(const td_ktensor *model) {
  for (std::int32_t m = 0; m < order_of(model); ++m)
    if (mode_has_labels(model, m))
      return true;
  return false;
}

void print_components(const td_ktensor *model, std::int64_t most) {
  constexpr std::size_t shown_components = 24, line = 120, narrowest = 16, widest = 40;
  const auto order = static_cast<std::size_t>(order_of(model));
  const std::size_t width = std::clamp((line - 20) / order - 2, narrowest, widest);
  const std::vector<double> weights = weights_of(model);
  std::string head = fmt::format("component {:>10}  ", "weight");
  for (std::size_t m = 0; m < order; ++m) {
    const std::string name = text(td_ktensor_get_mode_name, model, static_cast<std::int32_t>(m));
    head += cell(name.empty() ? fmt::format("mode {}", m) : shown(name), width);
  }
  fmt::print("\n{}\n", without_trailing_blanks(head));
  for (std::size_t r = 0; r < std::min(weights.size(), shown_components); ++r) {
    std::string with = fmt::format("{:>9} {:>10.4g}  ", r + 1, weights[r]),
                against = fmt::format("{:>20}  ", "against");
    bool any_against = false;
    for (std::size_t m = 0; m < order; ++m) {
      const auto entries = leading(model, static_cast<std::int32_t>(m), static_cast<std::int64_t>(r), most);
      const std::string others = names_of(entries, true);
      any_against = any_against || !others.empty();
      with += cell(names_of(entries, false), width);
      against += cell(others, width);
    }
    fmt::print("{}\n{}", without_trailing_blanks(with),
               any_against ? without_trailing_blanks(against) + "\n" : std::string());
  }
  if (weights.size() > shown_components)
    fmt::print("and {} of smaller weights\n", weights.size() - shown_components);
  fmt::print("\n");
}

Json components_of(const td_ktensor *model, std::int64_t most) {
  Json components = Json::array();
  const std::vector<double> weights = weights_of(model);
  for (std::size_t r = 0; r < weights.size(); ++r) {
    Json modes = Json::array();
    for (std::int32_t m = 0; m < order_of(model); ++m) {
      Json entries = Json::array();
      for (const Entry &e : leading(model, m, static_cast<std::int64_t>(r), most))
        entries.push_back({{"label", e.label}, {"index", e.index}, {"value", e.value}});
      modes.push_back(std::move(entries));
    }
    components.push_back({{"weight", weights[r]}, {"leading", std::move(modes)}});
  }
  return components;
}

Json mode_names(const td_ktensor *model) {
  Json names = Json::array();
  for (std::int32_t m = 0; m < order_of(model); ++m)
    names.push_back(text(td_ktensor_get_mode_name, model, m));
  return names;
}

} // namespace cli
