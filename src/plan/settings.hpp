// The options of scope "tensor", and those of scope "cpals" that decide about memory and partitions: parsed here alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "formats/numbering.hpp"
#include "formats/tiles.hpp"
#include "kernels/kernels.hpp"

namespace td::plan {

/// How a tensor is stored. Options ask for the first three only.
/// It lists the words of option "format" behind auto, and dense.
enum class Format { coo, blco, sorted, dense };
std::string_view name_of(Format format) noexcept;

/// Whether entries of a format stand by rows, so that a worker has those of its rows without looking at all.
constexpr bool stands_by_rows(Format format) noexcept { return format == Format::sorted || format == Format::dense; }

/// How options say that two or more things are possible: as is expected to be best, not at all, or as named.
/// Option "groups" alone may also ask for the multi-sweep dimension tree.
enum class Ask { automatic, none, named, multi_sweep };

/// Option "groups".
struct GroupsSetting {
  Ask ask = Ask::automatic;
  std::string text = "auto"; // a partition is parsed where the order is known: named_groups
};

/// Option "tiles".
struct TilesSetting {
  Ask ask = Ask::automatic;
  i64 rows = 0; // named
};

/// Option "sharding": how workers partition a mode's entries.
enum class ShardingRule { automatic, rows, entries };

/// Gives the words of option "conflicts".
std::string_view name_of(kernels::Conflicts conflicts) noexcept;

/// Gives the words of option "dense_kernel".
std::string_view name_of(kernels::DenseKernel kernel) noexcept;

/// Options "accumulate" and "gather", as far as they say something of values of a type.
struct Precision {
  bool f64_sums = false; // terms and sums of an f32 tensor
  bool f32_rows = false; // of factors, for an f64 tensor, where a backend gains by it
};

struct TensorSettings {
  std::optional<Format> format; // none: as decide_storage has it
  formats::EmptyRows empty_rows = formats::EmptyRows::few;
  bool refuse_duplicates = false;
  GroupsSetting groups;
  TilesSetting tiles;
  ShardingRule sharding = ShardingRule::automatic;
  kernels::Conflicts conflicts = kernels::Conflicts::automatic;
  bool f64_sums = false; // option "accumulate"
  bool f32_rows = false; // option "gather"
  kernels::DenseChoice dense;
  bool borrow = false;
  i64 memory_limit = 0; // of the context

  /// Throws Status::option_range for tiles that are none, and for a width of tiles where there are none.
  TensorSettings(const Options &options); // NOLINT: options are settings

  Precision precision(ValueType type) const noexcept;
  /// The rule for copies of values of this type, for kernels of the CPU or of a GPU.
  formats::TileRule tile_rule(ValueType type, bool gpu) const noexcept;
  /// The groups that a tensor of this type may have: a partial product would round sums that are to be f64, so auto
  /// has none then.
  GroupsSetting groups_for(ValueType type) const;
  /// Whether rows are numbered: coordinates that are asked for keep their indices.
  bool numbers_rows() const noexcept { return format != Format::coo; }
};

/// Options "mode_order" and "fixed_modes".
struct UpdateOrder {
  std::vector<int> mode_order;
  std::vector<int> fixed_modes;   // ascending
  std::vector<int> updated_modes; // mode_order without the fixed ones, at least one

  UpdateOrder(const Options &options, int order);
};

/// How factors are updated, in the order of option "solve". It decides which method a run takes (solvers/cpals.cpp).
enum class Solve { normal, qr };
std::string_view name_of(Solve solve) noexcept;

/// When factors are exchanged beside the solves, in the order of option "overlap".
enum class Overlap { automatic, on, off };

/// The chunks in which workers that exchange beside their work send the rows that they own of a factor.
struct GatherChunks {
  int count = 1;    // 1: all at once, after the last is solved
  double ratio = 1; // of a chunk's rows to those of the one before

  /// The part of the rows that is in the chunks before this one.
  double before(int chunk) const noexcept;
  double last() const noexcept { return 1 - before(count - 1); }
  Range of(i64 rows, int chunk) const noexcept;
};

/// `rows` are those of the worker that owns most. `ratio` tells how long rows take to the others, of the time that the
/// work beside them takes.
GatherChunks gather_chunks(Overlap overlap, i64 rows, i64 row_bytes, double ratio) noexcept;
/// The ratio where that work is MTTKRP of a mode, of `rows` rows in all.
double gather_ratio(i64 entries, i64 rows, int order, int workers) noexcept;

/// These are of scope "cpals".
struct SolverSettings {
  Overlap overlap = Overlap::automatic;
  bool deterministic = false;
  Solve solve = Solve::normal;
  bool nvecs = false;       // option "init"
  bool distributed = false; // option "model"

  explicit SolverSettings(const Options &options);
};

} // namespace td::plan
