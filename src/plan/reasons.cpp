#include "plan/reasons.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "plan/groups.hpp"

namespace td::plan {

formats::EmptyRows empty_rows_of(std::string_view option) {
  if (option == "keep")
    return formats::EmptyRows::keep;
  return option == "drop" ? formats::EmptyRows::drop : formats::EmptyRows::few;
}

std::string why_empty_rows(std::string_view option, std::string_view format) {
  if (format == "coo")
    return "format coo keeps indices as they are";
  if (option != "auto")
    return "asked for by option 'empty_rows'";
  return "rows without entries are dropped in modes that are long and have many";
}

formats::TileRule tile_rule_of(const Options &options, ValueType type, bool gpu) {
  using Kind = formats::TileRule::Kind;
  const std::string text = options.text("tiles");
  if (text == "auto") {
    const Precision precision = precision_of(options, type);
    return {gpu ? Kind::gpu : Kind::cpu, 0, type, precision.f32_rows, precision.f64_sums};
  }
  if (text == "none")
    return {Kind::none};
  i64 rows = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rows);
  if (error != std::errc{} || end != text.data() + text.size() || rows < 1)
    throw_error(Status::option_range, "option 'tiles' = \"{}\": expected auto, none or a number of rows, 1 or more",
                text);
  return {Kind::rows, rows};
}

std::string why_tiles(const formats::TileRule &rule, std::string_view format) {
  using Kind = formats::TileRule::Kind;
  if (format != "sorted")
    return fmt::format("format {} has no sorted copies to cut", format);
  if (rule.kind == Kind::none || rule.kind == Kind::rows)
    return "asked for by option 'tiles'";
  if (rule.kind == Kind::gpu)
    return "cut where rows in shared memory save more than ending more pieces of rows takes";
  return "cut until the factor rows of a tile fit a near cache, where pieces of rows stay long enough";
}

kernels::Conflicts conflicts_of(std::string_view option) {
  using kernels::Conflicts;
  return option == "private"  ? Conflicts::privatize
         : option == "atomic" ? Conflicts::atomic
         : option == "owner"  ? Conflicts::owner
                              : Conflicts::automatic;
}

std::string why_conflicts(std::string_view option, std::string_view format, bool cells, bool gpu) {
  if (option != "auto")
    return "asked for by option 'conflicts'";
  const std::string_view scattered =
      gpu && format == "blco"
          ? "copies of the result for modes shorter than the GPU has multiprocessors, else atomic additions"
      : gpu ? "atomic additions"
            : "private rows where they take little memory, else atomic additions";
  if (format != "sorted" && format != "dense")
    return std::string(scattered);
  const std::string_view rows = format == "sorted" ? "entries sorted by row: each row has an owner"
                                                   : "fixed parts of a dense tensor, summed in order";
  return cells ? fmt::format("{}; cells of groups: {}", rows, scattered) : std::string(rows);
}

Precision precision_of(const Options &options, ValueType type) {
  const bool f32 = type == ValueType::f32;
  return {f32 && options.text("accumulate") == "f64", !f32 && options.text("gather") == "f32"};
}

std::string precision_text(ValueType type, Precision precision, bool gathers) {
  return fmt::format("{}{}", name_of(type), precision.f64_sums ? " with f64 sums" : gathers ? " with f32 rows" : "");
}

std::string why_precision(ValueType type, Precision precision, bool gathers) {
  if (precision.f64_sums)
    return "asked for by option 'accumulate'";
  if (precision.f32_rows)
    return gathers ? "asked for by option 'gather'"
                   : "option 'gather' allows f32 rows, by which these kernels gain nothing";
  return fmt::format("the type of the values{}",
                     type == ValueType::f32 ? "; terms are added up in f64 at intervals" : "");
}

std::string groups_of(const Options &options, ValueType type) {
  const std::string option = options.text("groups");
  return option == "auto" && precision_of(options, type).f64_sums ? "none" : option;
}

std::string why_groups(const Options &options, ValueType type, bool gpu, std::string otherwise) {
  const std::string option = options.text("groups");
  if (groups_of(options, type) != option)
    return "sums are f64 by option 'accumulate', which a partial product in f32 would round";
  return gpu && option == "auto" ? why_gpu_groups : std::move(otherwise);
}

void require_meaning(const Options &options, std::string_view format, int order, ValueType type, bool gpu) {
  const auto refuse = [&](std::string_view option, std::string_view expected) {
    throw_error(Status::unsupported, "option '{}' = \"{}\": expected {} for format {}{}", option, options.text(option),
                expected, format, gpu ? " on a GPU" : "");
  };
  const auto groups = named_groups(options.text("groups"), order);
  if (groups && format != "sorted" && format != "dense")
    refuse("groups", "auto or none");
  if (tile_rule_of(options, type, gpu).kind == formats::TileRule::Kind::rows && format != "sorted")
    refuse("tiles", "auto or none");
  // Cells of groups are in no order of rows, whatever the tensor's format.
  const bool cells = groups && std::any_of(groups->begin(), groups->end(), [](const Group &g) { return g.size() > 1; });
  if (cells && precision_of(options, type).f64_sums)
    refuse("groups", "auto, none or single modes with option 'accumulate' = \"f64\"");
  const std::string conflicts = options.text("conflicts");
  if (!cells && format == "dense" && conflicts != "auto")
    refuse("conflicts", "auto, or modes that share partial products by option 'groups',");
  if (!cells && format == "sorted" && conflicts != "auto" && conflicts != "owner")
    refuse("conflicts", "auto or owner, or modes that share partial products by option 'groups',");
  if (gpu && format != "blco" && conflicts == "private")
    refuse("conflicts", "auto, atomic or owner");
}

std::string why_dense_groups(std::string_view option) {
  if (option != "auto")
    return "asked for by option 'groups'";
  return "the halves with the fewest cells, each shared where it takes at most a quarter of the tensor's memory";
}

} // namespace td::plan
