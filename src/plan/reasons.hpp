// What options say about storing a tensor, and sentences about what follows.
#pragma once

#include <string>
#include <string_view>

#include "core/options.hpp"
#include "formats/numbering.hpp"
#include "formats/tiles.hpp"
#include "kernels/kernels.hpp"

namespace td::plan {

/// Option "empty_rows".
formats::EmptyRows empty_rows_of(std::string_view option);
std::string why_empty_rows(std::string_view option, std::string_view format);

/// Option "tiles". Throws Status::option_range.
formats::TileRule tile_rule_of(const Options &options, ValueType type, bool gpu);
std::string why_tiles(const formats::TileRule &rule, std::string_view format);

/// Option "conflicts".
kernels::Conflicts conflicts_of(std::string_view option);
/// `cells`: of groups of modes that share a partial product.
std::string why_conflicts(std::string_view option, std::string_view format, bool cells, bool gpu);

/// Options "accumulate" and "gather", as far as they say something of values of a type.
struct Precision {
  bool f64_sums = false; // terms and sums of an f32 tensor
  bool f32_rows = false; // of factors, for an f64 tensor, where a backend gains by it
};
Precision precision_of(const Options &options, ValueType type);
/// `gathers`: whether rows are read in f32.
std::string precision_text(ValueType type, Precision precision, bool gathers);
std::string why_precision(ValueType type, Precision precision, bool gathers);

/// Option "groups". A partial product would round sums that are to be f64: then auto shares none.
std::string groups_of(const Options &options, ValueType type);
/// Why sorted copies or a dense tensor have the groups that they have; `otherwise` where no rule comes first.
std::string why_groups(const Options &options, ValueType type, bool gpu, std::string otherwise);

/// Throws Status::unsupported for groups, tiles or a policy for conflicts that are asked for and have no meaning for a
/// tensor of this order and type in this format on the CPU or a GPU.
void require_meaning(const Options &options, std::string_view format, int order, ValueType type, bool gpu);

inline constexpr const char *why_dense = "the input is a dense array";
std::string why_dense_groups(std::string_view option);
/// Of a sparse tensor in a format of one copy.
inline constexpr const char *why_gpu_groups = "shared partial products are for the caches of a CPU";
inline constexpr const char *why_no_groups = "each mode works on the one copy of the tensor";

} // namespace td::plan
