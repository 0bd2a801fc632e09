#include "plan/storage.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/sentence.hpp"
#include "formats/key.hpp"
#include "kernels/gpu_model.hpp"
#include "plan/grouping.hpp"

namespace td::plan {

namespace {

constexpr const char *by_gpu = "shared partial products are for the caches of a CPU";

struct FormatChoice {
  Format format;
  std::string why;
};

/// Whether sorted copies of so many bytes keep GPUs waiting for what they have no room for, longer than MTTKRP takes
/// over one copy in BLCO that they have room for. What is streamed comes while the rest is worked on. Where BLCO had to
/// be streamed as well, it would come once for each mode, and so be no less.
bool streams_too_long(double sorted, const formats::EntryShape &x, const StorageRequest &request,
                      const formats::TileRule &tiles) {
  namespace gpu = kernels::gpu;
  const double gpus = request.gpus;
  const double room = gpus * static_cast<double>(request.chip.memory_bytes);
  if (room <= 0 || sorted <= room || formats::blco_footprint(x, request.threads).stored > room)
    return false;
  formats::TileRule rule = tiles;
  rule.kind = formats::TileRule::Kind::gpu; // of others it is not known what they take
  const double blco = gpu::blco_times_sorted * formats::gpu_seconds(rule, x.dims, x.nnz) / gpus;
  return (sorted - room) / (gpus * gpu::nominal_host_rate) > blco;
}

FormatChoice choose_format(const formats::EntryShape &x, const StorageRequest &request,
                           const formats::TileRule &tiles) {
  const std::optional<Format> wanted = request.settings.format;
  const int bits = formats::linear_bits(x.dims);
  if (bits > formats::max_linear_bits) {
    if (wanted && *wanted != Format::coo)
      throw_error(Status::unsupported,
                  "format {}: the indices of all modes together need {} bits, expected at most {}; format coo has no "
                  "such limit",
                  name_of(*wanted), bits, formats::max_linear_bits);
    return {Format::coo, fmt::format("the indices of all modes together need {} bits, more than the {} of a linearized "
                                     "key",
                                     bits, formats::max_linear_bits)};
  }
  if (wanted)
    return {*wanted, "asked for by option 'format'"};
  const double sorted = formats::sorted_footprint(x, tiles, request.threads).stored;
  const HostMemory memory = request.memory.for_need(saturated(4 * sorted));
  const bool fits = sorted <= static_cast<double>(memory.bytes) / 4;
  const bool only_sorted = request.settings.tiles.ask == Ask::named || request.settings.groups.ask == Ask::named;
  if (fits && request.is_for_gpus() && !only_sorted && streams_too_long(sorted, x, request, tiles))
    return {Format::blco,
            fmt::format("one copy fits the memory of the GPU{}, where copies sorted by each mode, which take {}, would "
                        "be streamed from the host for longer than working on the one copy takes",
                        request.gpus == 1 ? "" : "s", size_text(saturated(sorted)))};
  return {fits ? Format::sorted : Format::blco,
          fmt::format("a copy sorted by each mode is fastest and takes {}, {} a quarter of the memory that there is",
                      size_text(saturated(sorted)), fits ? "at most" : "more than")};
}

std::string why_rows(formats::EmptyRows rows, Format format) {
  if (format == Format::dense)
    return "every row of a dense tensor takes part";
  if (format == Format::coo)
    return "format coo keeps indices as they are";
  if (rows != formats::EmptyRows::few)
    return "asked for by option 'empty_rows'";
  return "rows without entries are dropped in modes that are long and have many";
}

std::string why_tiles(const formats::TileRule &rule, Format format) {
  using Kind = formats::TileRule::Kind;
  if (format != Format::sorted)
    return fmt::format("format {} has no sorted copies to cut", name_of(format));
  if (rule.kind == Kind::none || rule.kind == Kind::rows)
    return "asked for by option 'tiles'";
  if (rule.kind == Kind::gpu)
    return "cut where rows in shared memory save more than ending more segments of rows takes";
  return "cut until the factor rows of a tile fit a near cache, where segments of rows stay long enough";
}

/// Why sorted copies or a dense tensor have the groups that they have; `otherwise` where no rule comes first.
std::string why_groups(const TensorSettings &settings, ValueType type, bool gpu, std::string otherwise) {
  if (settings.groups_for(type).ask != settings.groups.ask)
    return "sums are f64 by option 'accumulate', which a partial product in f32 would round";
  return gpu && settings.groups.ask == Ask::automatic ? by_gpu : std::move(otherwise);
}

/// Throws Status::unsupported for groups, tiles, a policy for conflicts or a dense kernel that are asked for and have
/// no meaning for a tensor of this order and type in this format on the CPU or a GPU.
void require_meaning(const TensorSettings &settings, Format format, int order, ValueType type, bool gpu) {
  const auto refuse = [&](std::string_view option, std::string_view asked, std::string_view expected) {
    throw_error(Status::unsupported, "option '{}' = \"{}\": expected {} for format {}{}", option, asked, expected,
                name_of(format), gpu ? " on a GPU" : "");
  };
  const bool by_rows = stands_by_rows(format);
  const auto groups = named_groups(settings.groups, order);
  const bool multi_sweep = settings.groups.ask == Ask::multi_sweep;
  if (multi_sweep && format != Format::dense)
    refuse("groups", settings.groups.text, by_rows ? "auto, none or a partition" : "auto or none");
  if (groups && !by_rows)
    refuse("groups", settings.groups.text, "auto or none");
  if (settings.tiles.ask == Ask::named && format != Format::sorted)
    refuse("tiles", std::to_string(settings.tiles.rows), "auto or none");
  // Cells of groups are in no order of rows, whatever the tensor's format.
  const bool cells = groups && std::any_of(groups->begin(), groups->end(), [](const Group &g) { return g.size() > 1; });
  if ((cells || multi_sweep) && settings.precision(type).f64_sums)
    refuse("groups", settings.groups.text, "auto, none or single modes with option 'accumulate' = \"f64\"");
  using kernels::Conflicts;
  const Conflicts conflicts = settings.conflicts;
  if (!cells && format == Format::dense && conflicts != Conflicts::automatic)
    refuse("conflicts", name_of(conflicts), "auto, or modes that share partial products by option 'groups',");
  if (!cells && format == Format::sorted && conflicts != Conflicts::automatic && conflicts != Conflicts::owner)
    refuse("conflicts", name_of(conflicts), "auto or owner, or modes that share partial products by option 'groups',");
  if (gpu && format != Format::blco && conflicts == Conflicts::privatize)
    refuse("conflicts", name_of(conflicts), "auto, atomic or owner");
  if (settings.dense.kernel != kernels::DenseKernel::automatic && (format != Format::dense || !gpu))
    refuse("dense_kernel", name_of(settings.dense.kernel), format == Format::dense ? "auto, or a GPU," : "auto");
  if (settings.dense.kernel == kernels::DenseKernel::fused_tf32 && type == ValueType::f64)
    refuse("dense_kernel", name_of(settings.dense.kernel), "another, or f32 values,");
}

} // namespace

Storage decide_storage(const formats::EntryShape &numbered, const StorageRequest &request) {
  const TensorSettings &settings = request.settings;
  Storage storage;
  storage.tiles = settings.tile_rule(numbered.type, request.is_for_gpus());
  storage.tiles.chip = request.chip;
  auto [format, why] = choose_format(numbered, request, storage.tiles);
  storage.format = format;
  storage.why = {std::move(why), why_rows(settings.empty_rows, format), "each mode works on the one copy of the tensor",
                 why_tiles(storage.tiles, format)};
  require_meaning(settings, format, static_cast<int>(numbered.dims.size()), numbered.type, request.is_for_gpus());
  return storage;
}

void decide_groups(Storage &storage, const formats::EntryShape &numbered, const StorageRequest &request) {
  GroupsSetting groups = request.settings.groups_for(numbered.type);
  // A partition that is asked for by name is made for a GPU, too.
  if (request.is_for_gpus() && groups.ask == Ask::automatic)
    groups.ask = Ask::none;
  Grouping grouping = sparse_groups(numbered, groups);
  storage.partition = std::move(grouping.groups);
  storage.why.groups = why_groups(request.settings, numbered.type, request.is_for_gpus(), std::move(grouping.why));
}

Storage dense_storage(int order, ValueType type, const StorageRequest &request) {
  const TensorSettings &settings = request.settings;
  require_meaning(settings, Format::dense, order, type, request.is_for_gpus());
  Storage storage;
  storage.format = Format::dense;
  const char *groups = settings.groups.ask == Ask::automatic
                           ? "the partial products with which an update is expected to take the least time, each at "
                             "most a quarter of the tensor's memory"
                           : "asked for by option 'groups'";
  storage.why = {"the input is a dense array", why_rows(settings.empty_rows, Format::dense),
                 why_groups(settings, type, false, groups), why_tiles({}, Format::dense)};
  return storage;
}

formats::Footprint footprint_of(Format format, const formats::EntryShape &x, const formats::TileRule &tiles,
                                int threads) {
  switch (format) {
  case Format::dense:
    return formats::dense_footprint(x.dims, x.type);
  case Format::coo:
    return formats::coo_footprint(x, threads);
  case Format::blco:
    return formats::blco_footprint(x, threads);
  case Format::sorted:
    break;
  }
  return formats::sorted_footprint(x, tiles, threads);
}

void require_storage(const Storage &storage, const formats::EntryShape &x, const StorageRequest &request) {
  const auto footprint = footprint_of(storage.format, x, storage.tiles, request.threads);
  MemoryNeed need;
  need.add("the tensor", footprint.stored);
  need.add("building it", footprint.building);
  std::string advice;
  if (storage.format == Format::sorted) {
    const auto less = formats::blco_footprint(x, request.threads);
    MemoryNeed blco;
    blco.add("", less.stored + less.building);
    advice = fmt::format("format blco needs {}", size_text(blco.total()));
  } else if (x.type == ValueType::f64) {
    advice = "values in f32 need less";
  }
  const bool dense = storage.format == Format::dense;
  require_memory(fmt::format("a {} tensor of {}", name_of(storage.format),
                             dense ? count_text(x.nnz, "element", "elements") : count_text(x.nnz, "entry", "entries")),
                 need, request.memory.for_need(need.total()), advice);
}

Decoded decoded_bytes(Format format, const formats::EntryShape &x, int threads) {
  if (format == Format::coo || format == Format::dense)
    return {};
  const double coordinates =
      static_cast<double>(x.nnz) * (8 * static_cast<double>(x.dims.size()) + static_cast<double>(size_of(x.type)));
  if (format == Format::blco) // in canonical order
    return {coordinates, coordinates};
  const auto sorting = formats::coo_footprint(x, threads); // beside coordinates in the order of a copy
  return {coordinates, coordinates + sorting.stored + sorting.building};
}

} // namespace td::plan
