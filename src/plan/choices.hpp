// What a plan says that was chosen, and why.
#pragma once

#include "plan/plan.hpp"

namespace td::plan {

/// What each worker's GPU holds of a tensor.
enum class Holding {
  all,      // one worker's, or that of workers in host memory
  summed,   // what the worker sums
  gathered, // a range of entries or slabs; all workers need all of them, span by span
};
Holding holding_of(const Layout &l, ShardingRule rule, bool deterministic, int workers, bool gpu);

/// What the tensor has been or will be made with, and what for.
struct Asked {
  TensorSettings tensor;
  SolverSettings solver;
  bool checkpoint;

  Asked(const TensorSettings &settings, const Options &options)
      : tensor(settings), solver(options), checkpoint(!options.text("checkpoint").empty()) {}
};

/// Whether several workers partition rows, so that sums need no merging but those of rows that are cut.
bool partitions_rows(Format format, ShardingRule rule, bool deterministic, Holding holding);
Choice sharding_choice(Format format, ShardingRule rule, bool deterministic, int workers, Holding holding);
Choice conflicts_choice(const Layout &l, const Asked &asked, bool gpu);
/// `taken`: the kernels that auto comes to in a sweep.
Choice dense_kernel_choice(const Layout &l, kernels::DenseKernel asked, std::span<const kernels::DenseKernel> taken,
                           bool gpu);
/// `gathers`: whether rows are read in f32; `products`: whether matrix products add the terms.
Choice precision_choice(ValueType type, Precision precision, bool gathers, bool products);

} // namespace td::plan
