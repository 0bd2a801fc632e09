// What `td bench` finds out about a tensor. All times are medians.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "entry_arrays.hpp"
#include "floor.hpp"
#include "worker_figures.hpp"

namespace cli {

/// What is to be measured, and how often.
struct Wish {
  bool mttkrp = true, iteration = true, build = true, read = true;
  std::vector<std::int64_t> ranks;
  std::int64_t repeats = 5;
  std::string scratch; // folder for the files that are read
};

/// Iterations of CP-ALS at one rank; the first is left out.
struct SweepFigures {
  std::int64_t rank = 0;
  std::vector<double> mttkrp; // a mode
  double mttkrp_sum = 0;      // over the modes of an iteration
  double iteration = 0;
  std::vector<Floor> floor;      // a mode
  std::vector<double> predicted; // by a plan: seconds of a mode's MTTKRP, 0 where they are not known
  double predicted_mttkrp = 0;   // of all modes
  double predicted_iteration = 0;
  std::vector<WorkerFigures> workers; // of a run beside, in which their time is broken down; none of one worker alone
  double measured_iteration = 0;      // of that run
};

struct BuildFigures {
  double seconds = 0;
  double sweeps = 0;                // the same in MTTKRPs of all modes at rank sweep_rank; sparse tensors alone
  std::optional<std::int64_t> peak; // bytes, beside the caller's arrays
};
inline constexpr std::int64_t sweep_rank = 32;

struct ReadFigures {
  std::string file_format;
  std::int64_t bytes = 0; // of the file
  double seconds = 0;     // without building
  double build = 0;
};

struct Figures {
  std::string name, description;
  Json tensor; // tensor_facts
  std::int64_t entries = 0, bytes = 0;
  std::vector<SweepFigures> sweeps; // a rank
  std::optional<BuildFigures> build;
  std::vector<ReadFigures> files;

  Json document(const Wish &wish) const;
  void print(const Wish &wish) const;
};

/// Builds the tensor from the arrays, which are let go as soon as they are not needed, and measures.
Figures measure(td_context *context, const td_options *options, EntryArrays arrays, const Wish &wish,
                const Limits &limits);

} // namespace cli
