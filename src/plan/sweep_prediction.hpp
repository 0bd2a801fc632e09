// A sweep's prediction is what a backend says of one worker's part of a sweep of CP-ALS.
#pragma once

#include "plan/layout.hpp"
#include "plan/sweep_tree.hpp"

namespace td::plan {

struct SweepWork {
  const kernels::Backend &backend; // of one worker
  i64 rank = 1;
  int workers = 1;
  kernels::Conflicts conflicts = kernels::Conflicts::automatic;
  ShardingRule sharding = ShardingRule::automatic;
  bool deterministic = false;
  Precision precision;
  kernels::Rates rates;
  kernels::DenseChoice dense = {};
  const SweepTree *tree = nullptr; // of a dense tensor
};

struct SweepPrediction {
  std::vector<kernels::Prediction> modes; // of MTTKRP; the first mode of a group pays for the partial product; of a
                                          // dense tensor the average of sweeps
  double seconds_mttkrp = 0;
  double seconds_update = 0;
  double bytes = 0;     // of workspace of kernels, at most
  bool gathers = false; // rows of factors in f32
  // The kernels that a backend which has several takes for a dense tensor.
  std::vector<kernels::DenseKernel> dense;
};

SweepPrediction predict_sweep(const Layout &layout, const SweepWork &work);

} // namespace td::plan
