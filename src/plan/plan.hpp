// A plan says what td would do with a tensor at a rank, what that takes, and why, before it is done.
#pragma once

#include <memory>

#include "plan/layout.hpp"
#include "plan/partition.hpp"
#include "plan/sweep_tree.hpp"

namespace td::plan {

/// Bytes at a place.
struct PlaceBytes {
  i64 tensor = 0;
  i64 building = 0; // besides the tensor, at the worst moment
  i64 solver = 0;   // besides the tensor, at the worst moment
  i64 streamed = 0; // of the tensor, from the host in every sweep
  i64 peak() const noexcept;
};

/// What was chosen, and why.
struct Choice {
  std::string what;
  std::string why;
};

struct ModePlan {
  std::string kernel;
  std::string conflicts;
  double seconds = 0;       // of MTTKRP; 0: not known
  double workspace = 0;     // of MTTKRP, bytes of one worker's kernels
  std::vector<double> load; // [workers] stored entries
  double imbalance = 0;     // largest load / mean load - 1
  double unsplit = 0;       // the same if no row may be split
  i64 split_rows = 0;       // rows whose entries several workers sum
};

struct Plan {
  Layout layout;
  i64 rank = 0;
  int workers = 1;
  int threads = 1; // of all workers
  i64 sweeps = 1;  // after which a dense tensor's partial products begin again
  std::string devices;
  PlaceBytes host, device;
  HostMemory available; // on the host, for what is not there yet
  bool fits = true;
  MemoryNeed solver; // of what it consists
  std::vector<ModePlan> modes;
  Choice sharding, conflicts, precision, exchange, dense_kernel;
  kernels::Rates rates;
  std::string rates_why;
  double seconds_mttkrp = 0; // of an iteration; 0: not known
  double seconds_update = 0;
  double seconds_exchange = 0; // between GPUs or processes, that nothing hides; 0: none, or not known
  i64 exchanged = 0;           // bytes that a GPU receives from others in an iteration, or a process sends to others
  i64 exchange_messages = 0;   // that a process sends in an iteration, of rows and their sums
  i64 exchange_calls = 0;      // of the communicator's functions in an iteration
  // What follows is known of a shape that is planned for several processes.
  std::vector<double> scaling; // seconds of an iteration with 1, 2, 4, ... processes; empty: not known
  int scales_to = 0;           // of these, the most up to which exchange takes no longer than work
  int fastest_processes = 0;

  /// The entries of all processes.
  i64 entries() const noexcept;
  std::string describe() const;
};

struct PlanRequest {
  Options options;
  i64 rank = 0;
  std::vector<std::shared_ptr<kernels::Backend>> backends; // one a worker
  std::string devices;                                     // the context's description
  int processes = 1;                                       // that each hold all of the tensor, and some rows
  int sharing = 1;                                         // of these, that hold it together with this one
};

/// Throws Status::shape for a rank below 1.
void require_rank(i64 rank);
int threads_of(const PlanRequest &request);
/// Processes that the plan of a shape or a file counts with, by option.
int processes_of(const PlanRequest &request);
bool is_gpu(const PlanRequest &request);

/// How a tensor would be stored by these settings.
StorageRequest storage_request(const PlanRequest &request, const TensorSettings &settings);

/// What plans know of a tensor that there is.
struct Stored {
  Layout layout;
  TensorSettings settings;
  std::vector<Partition> partitions; // of the work on each mode
  std::vector<i64> resident;         // bytes of entries that each worker's device has by now; empty: none
};

/// Throws Status::host_memory, with what would need less, if CP-ALS on a tensor of this layout does not fit. Gives the
/// partial products that sweeps of a dense tensor go through, of which GPUs hold `resident_now` bytes already; of a
/// sparse one, and with option "solve" = "qr" unless groups are named, none.
SweepTree require_solver(const Layout &layout, const TensorSettings &settings, const PlanRequest &request,
                         bool checkpoint, i64 resident_now);

/// Bytes that kernels of one worker take while they compute MTTKRP in a mode.
double mttkrp_workspace(const Layout &layout, const TensorSettings &settings, const PlanRequest &request, int mode);

Plan plan_of(Stored x, const PlanRequest &request);
Plan plan_of(std::span<const i64> dims, i64 nnz, ValueType type, const PlanRequest &request);
Plan plan_of(const EntriesView &entries, const PlanRequest &request);
/// The plan of one of several processes.
Plan plan_of(std::span<const i64> dims, const ProcessPart &part, ValueType type, const PlanRequest &request);
Plan plan_of_dense(std::span<const i64> dims, ValueType type, const PlanRequest &request);

} // namespace td::plan
