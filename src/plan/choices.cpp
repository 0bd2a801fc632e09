#include "plan/choices.hpp"

#include <algorithm>

namespace td::plan {

Holding holding_of(const Layout &l, ShardingRule rule, bool deterministic, int workers, bool gpu) {
  if (!gpu || workers == 1)
    return Holding::all;
  const bool gathered = !l.sparse                  ? !takes_slabs(l.slabs(), workers, rule, deterministic)
                        : stands_by_rows(l.format) ? deterministic
                                                   : needs_all_entries(workers, rule, deterministic);
  return gathered ? Holding::gathered : Holding::summed;
}

bool partitions_rows(Format format, ShardingRule rule, bool deterministic, Holding holding) {
  if (format == Format::dense)
    return holding != Holding::summed;
  return deterministic || rule == ShardingRule::rows || (rule == ShardingRule::automatic && format == Format::sorted);
}

namespace {

std::string why_sharding(Format format, ShardingRule rule, bool deterministic, Holding holding) {
  if (format == Format::dense && holding == Holding::summed)
    return "each GPU holds slabs, slices of the mode that is slowest in memory, equally many; sums of other modes are "
           "merged";
  const char *const gathers =
      holding != Holding::gathered ? ""
      : computes_all_rows(format, deterministic)
          ? "; each GPU holds a part, all gather span after span, and each sums all rows as one alone does"
          : "; each GPU holds a part, and all gather span after span";
  if (format == Format::dense)
    return fmt::format("rows of a dense tensor have equally many elements: equally many rows for each worker{}",
                       gathers);
  if (deterministic)
    return fmt::format("option 'deterministic' keeps a row's sum on one worker{}", gathers);
  if (rule != ShardingRule::automatic)
    return fmt::format("asked for by option 'sharding'{}", gathers);
  if (format != Format::sorted)
    return "entries stand in no order of rows: equally many for each worker, and sums are merged";
  return "each row to one worker, heaviest ranges first to the least loaded; rows above an equal load are split";
}

std::string why_conflicts(kernels::Conflicts conflicts, Format format, bool cells, bool gpu) {
  if (conflicts != kernels::Conflicts::automatic)
    return "asked for by option 'conflicts'";
  const std::string_view scattered =
      gpu && format == Format::blco
          ? "copies of the result for modes shorter than the GPU has multiprocessors, else atomic additions"
      : gpu ? "atomic additions"
            : "private rows where they take little memory, else atomic additions";
  if (format != Format::sorted && format != Format::dense)
    return std::string(scattered);
  const std::string_view rows = format == Format::sorted ? "entries sorted by row: each row has an owner"
                                                         : "fixed parts of a dense tensor, summed in order";
  return cells ? fmt::format("{}; cells of groups: {}", rows, scattered) : std::string(rows);
}

} // namespace

Choice sharding_choice(Format format, ShardingRule rule, bool deterministic, int workers, Holding holding) {
  if (workers == 1)
    return {"none", "one worker has it all"};
  return {partitions_rows(format, rule, deterministic, holding) ? "rows" : "entries",
          why_sharding(format, rule, deterministic, holding)};
}

Choice conflicts_choice(const Layout &l, const Asked &asked, bool gpu) {
  if (asked.solver.deterministic)
    return {"owner", "option 'deterministic' keeps the order of a row's terms"};
  const bool cells =
      l.sparse && std::any_of(l.partition.begin(), l.partition.end(), [](const GroupLayout &g) { return g.shared; });
  const kernels::Conflicts conflicts = asked.tensor.conflicts;
  return {std::string(name_of(conflicts)), why_conflicts(conflicts, l.format, cells, gpu)};
}

Choice dense_kernel_choice(const Layout &l, kernels::DenseKernel asked, std::span<const kernels::DenseKernel> taken,
                           bool gpu) {
  if (l.format != Format::dense)
    return {"none", fmt::format("format {} has kernels of its own", name_of(l.format))};
  if (!gpu)
    return {"auto", "a CPU has one kernel for dense tensors"};
  if (asked != kernels::DenseKernel::automatic)
    return {std::string(name_of(asked)), "asked for by option 'dense_kernel'"};
  if (taken.size() > 1)
    return {"auto", "fused or gemm, whichever is predicted to be faster in a mode"};
  if (std::count(taken.begin(), taken.end(), kernels::DenseKernel::gemm) > 0)
    return {std::string(name_of(kernels::DenseKernel::gemm)),
            "cuBLAS is predicted to be faster in each mode; fused where its workspace is not free"};
  return {std::string(name_of(kernels::DenseKernel::fused)),
          "multiplies on the tensor cores, with no Khatri-Rao product of all indices in memory"};
}

Choice precision_choice(ValueType type, Precision precision, bool gathers, bool products) {
  Choice choice;
  choice.what = fmt::format("{}{}", name_of(type),
                            precision.f64_sums ? " with f64 sums"
                            : gathers          ? " with f32 rows"
                                               : "");
  if (precision.f64_sums)
    choice.why = "asked for by option 'accumulate'";
  else if (precision.f32_rows)
    choice.why = gathers ? "asked for by option 'gather'"
                         : "option 'gather' allows f32 rows, by which these kernels gain nothing";
  else
    choice.why = fmt::format("the type of the values{}", type == ValueType::f64 ? ""
                                                         : products             ? "; matrix products add terms in f32"
                                                                    : "; terms are added up in f64 at intervals");
  return choice;
}

} // namespace td::plan
