#include "plan/settings.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>

#include "core/error.hpp"
#include "core/mode_list.hpp"
#include "core/sentence.hpp"

namespace td::plan {

namespace {

Ask asked(std::string_view text) { return text == "auto" ? Ask::automatic : text == "none" ? Ask::none : Ask::named; }

GroupsSetting groups_of(const std::string &text) {
  return {text == "multi-sweep" ? Ask::multi_sweep : asked(text), text};
}

TilesSetting tiles_of(const std::string &text) {
  TilesSetting tiles{asked(text), 0};
  if (tiles.ask != Ask::named)
    return tiles;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), tiles.rows);
  if (error != std::errc{} || end != text.data() + text.size() || tiles.rows < 1)
    throw_error(Status::option_range, "option 'tiles' = \"{}\": expected auto, none or a number of rows, 1 or more",
                text);
  return tiles;
}

kernels::DenseChoice dense_choice_of(const Options &options) {
  const kernels::DenseChoice dense{options.choice<kernels::DenseKernel>("dense_kernel"),
                                   options.integer("dense_tile_width")};
  if (dense.tile_width > 0 && dense.kernel != kernels::DenseKernel::tile)
    throw_error(Status::option_range,
                "option 'dense_tile_width' = {} with 'dense_kernel' = \"{}\": expected 0, or 'dense_kernel' = \"tile\"",
                dense.tile_width, name_of(dense.kernel));
  return dense;
}

} // namespace

std::string_view name_of(Format format) noexcept {
  return format == Format::dense ? "dense" : choice_at("format", 1 + static_cast<std::size_t>(format));
}
std::string_view name_of(kernels::Conflicts conflicts) noexcept {
  return choice_at("conflicts", static_cast<std::size_t>(conflicts));
}
std::string_view name_of(kernels::DenseKernel kernel) noexcept {
  return choice_at("dense_kernel", static_cast<std::size_t>(kernel));
}
std::string_view name_of(Solve solve) noexcept { return choice_at("solve", static_cast<std::size_t>(solve)); }

TensorSettings::TensorSettings(const Options &options)
    : format(options.choice_behind_auto<Format>("format")),
      empty_rows(options.choice<formats::EmptyRows>("empty_rows")),
      refuse_duplicates(options.choice("duplicates") != 0), groups(groups_of(options.text("groups"))),
      tiles(tiles_of(options.text("tiles"))), sharding(options.choice<ShardingRule>("sharding")),
      conflicts(options.choice<kernels::Conflicts>("conflicts")), f64_sums(options.choice("accumulate") != 0),
      f32_rows(options.choice("gather") != 0), dense(dense_choice_of(options)), borrow(options.integer("borrow") != 0),
      memory_limit(options.integer("memory_limit")) {}

Precision TensorSettings::precision(ValueType type) const noexcept {
  const bool f32 = type == ValueType::f32;
  return {f32 && f64_sums, !f32 && f32_rows};
}

formats::TileRule TensorSettings::tile_rule(ValueType type, bool gpu) const noexcept {
  using Kind = formats::TileRule::Kind;
  if (tiles.ask == Ask::none)
    return {Kind::none};
  if (tiles.ask == Ask::named)
    return {Kind::rows, tiles.rows};
  const Precision p = precision(type);
  return {gpu ? Kind::gpu : Kind::cpu, 0, type, p.f32_rows, p.f64_sums};
}

GroupsSetting TensorSettings::groups_for(ValueType type) const {
  return groups.ask == Ask::automatic && precision(type).f64_sums ? GroupsSetting{Ask::none, "none"} : groups;
}

namespace {

std::vector<int> modes_of(const Options &options, const char *name, int order) {
  const std::string text = options.text(name);
  return parse_modes(text, order, name, text);
}

} // namespace

UpdateOrder::UpdateOrder(const Options &options, int order)
    : mode_order(modes_of(options, "mode_order", order)), fixed_modes(modes_of(options, "fixed_modes", order)) {
  if (mode_order.empty()) {
    mode_order.resize(static_cast<std::size_t>(order));
    std::iota(mode_order.begin(), mode_order.end(), 0);
  }
  if (mode_order.size() != static_cast<std::size_t>(order))
    throw_error(Status::option_range, "option 'mode_order' = \"{}\": {}; expected each of 0 .. {} once",
                options.text("mode_order"), count_text(static_cast<i64>(mode_order.size()), "mode", "modes"),
                order - 1);
  std::sort(fixed_modes.begin(), fixed_modes.end());
  std::copy_if(mode_order.begin(), mode_order.end(), std::back_inserter(updated_modes),
               [&](int m) { return !std::binary_search(fixed_modes.begin(), fixed_modes.end(), m); });
  if (updated_modes.empty())
    throw_error(Status::option_range,
                "option 'fixed_modes' = \"{}\", counting from 0: all modes; expected at least one to be updated",
                options.text("fixed_modes"));
}

double GatherChunks::before(int chunk) const noexcept {
  double part = 1;
  double sum = 0;
  double all = 0;
  for (int c = 0; c < count; ++c) {
    sum += c < chunk ? part : 0;
    all += part;
    part *= ratio;
  }
  return sum / all;
}

Range GatherChunks::of(i64 rows, int chunk) const noexcept {
  const auto at = [&](int c) { return c == count ? rows : static_cast<i64>(before(c) * static_cast<double>(rows)); };
  return {at(chunk), at(chunk + 1)};
}

// Nothing hides the way of the last chunk, and each costs launches, the ends of kernels and meetings of the workers: 60
// to 100 microseconds on two H200, in which 32 MiB come. So there are as many as leave little to the last one, but few,
// each as long as what goes on beside it can hide. A test asks for chunks of few rows.
GatherChunks gather_chunks(Overlap overlap, i64 rows, i64 row_bytes, double ratio) noexcept {
  constexpr double most_left = i64{32} << 20; // bytes
  constexpr int most = 8;
  constexpr i64 most_asked_for = 4;
  GatherChunks chunks{1, ratio};
  if (overlap == Overlap::off || rows == 0)
    return chunks;
  if (overlap == Overlap::on)
    chunks.count = static_cast<int>(std::min(rows, most_asked_for));
  else
    while (chunks.count < most &&
           chunks.last() * static_cast<double>(rows) * static_cast<double>(row_bytes) > most_left)
      ++chunks.count;
  return chunks;
}

// MTTKRP reads a row of each other factor for an entry, some 16 times as fast as rows come from another GPU (two H200:
// 6.2 TB/s on a tensor of 140 million entries whose rows come at 0.375).
double gather_ratio(i64 entries, i64 rows, int order, int workers) noexcept {
  constexpr double rates = 16;
  const double of_a_row = std::max(static_cast<double>(entries) / static_cast<double>(std::max<i64>(rows, 1)), 1.0);
  return std::clamp(rates * (workers - 1) / (of_a_row * (order - 1)), 0.125, 1.0);
}

SolverSettings::SolverSettings(const Options &options)
    : overlap(options.choice<Overlap>("overlap")), deterministic(options.integer("deterministic") != 0),
      solve(options.choice<Solve>("solve")), nvecs(options.choice("init") != 0),
      distributed(options.choice("model") != 0) {}

} // namespace td::plan
