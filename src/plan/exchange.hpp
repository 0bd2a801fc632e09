// What workers and processes exchange in an iteration of CP-ALS, and how long that takes: over links between GPUs, or
// over a network that is given by its latency and its bandwidth.
#pragma once

#include "plan/choices.hpp"

namespace td::plan {

/// Options "link_latency" and "link_rate", or what stands for the latter.
struct Network {
  static constexpr double usual_rate = 1.25e10; // of 100 Gbit/s
  double latency = 0;                           // seconds of a message
  double rate = usual_rate;                     // bytes a second that a process sends while it receives as many
  bool assumed = true;                          // the rate

  explicit Network(const Options &options);
};

/// What one process does in an iteration.
struct ProcessExchange {
  double bytes = 0;    // that it sends, and receives, of rows and of their sums
  double messages = 0; // that they are in
  double seconds = 0;
  i64 calls = 0; // of the communicator's functions
};

/// What a process exchanges of a tensor that processes share. A sum is of 8 bytes where option "accumulate" has it;
/// rows are of the tensor's type.
ProcessExchange process_exchange(const Layout &l, const PlanRequest &request, const Asked &asked,
                                 const Network &network);

/// How several GPUs exchange.
kernels::ExchangeChoice exchange_in(const PlanRequest &request);

/// In each mode a GPU receives the rows of the factor that others own, and the sums of its own rows that others have
/// where these are merged; and entries of the tensor where workers gather them.
void predict_exchange(Plan &plan, const PlanRequest &request, const Asked &asked, const SweepTree &tree,
                      Holding holding);

} // namespace td::plan
