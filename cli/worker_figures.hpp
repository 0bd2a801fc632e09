// What each worker of a run has to do, and what its time went to, as option "breakdown" measures it.
#pragma once

#include <cstdint>
#include <vector>

#include "handles.hpp"
#include "output.hpp"

namespace cli {

/// Means over the iterations but the first, which warms caches; seconds.
struct WorkerFigures {
  struct Seconds {
    double compute = 0, host_device = 0, exchange = 0, idle = 0;
    double total() const noexcept { return compute + host_device + exchange + idle; }
  };
  std::vector<double> entries, rows; // a mode: what the worker sums, and owns
  Seconds mttkrp, iteration;         // of all modes; of an iteration, with these
};

/// Each worker has its figures; the list is empty where none were measured.
std::vector<WorkerFigures> worker_figures(const td_report *report);

nlohmann::ordered_json worker_document(const std::vector<WorkerFigures> &workers);

/// A table with a line a worker, of what stands in `seconds`.
void print_workers(const std::vector<WorkerFigures> &workers, const char *what,
                   WorkerFigures::Seconds WorkerFigures::*seconds);

} // namespace cli
