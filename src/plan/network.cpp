#include "plan/network.hpp"

#include <cmath>

namespace td::plan {

namespace {

// Functions of the communicator, before each of which processes agree that none has failed: an all-reduce of one
// number. An update of a mode sends sums to owners and rows back, and adds up the columns' norms and the Gram matrix.
// After the last, the fit is added up, and process 0 tells whether it is computed anew, what came of the iteration and
// whether it was the last, of which a callback of any process decides.
constexpr i64 exchanges_of_mode = 2;
constexpr i64 sums_of_mode = 2;
constexpr i64 small_of_iteration = 5;

} // namespace

Network::Network(const Options &options) : latency(options.real("link_latency")) {
  if (const double given = options.real("link_rate"); given > 0) {
    rate = given;
    assumed = false;
  }
}

ProcessExchange process_exchange(const Layout &layout, i64 rank, i64 sum_bytes, std::span<const int> updated_modes,
                                 const Network &network) {
  const SharedRows &shared = layout.shared;
  const auto columns = static_cast<double>(rank);
  const auto row = static_cast<double>(size_of(layout.type));
  ProcessExchange out;
  for (const int m : updated_modes) {
    const auto mode = static_cast<std::size_t>(m);
    out.bytes += columns * (static_cast<double>(shared.lent[mode]) * static_cast<double>(sum_bytes) +
                            static_cast<double>(shared.shared[mode]) * row);
    out.messages += 2 * static_cast<double>(shared.partners[mode]);
  }
  const auto modes = static_cast<i64>(updated_modes.size());
  const i64 exchanges = exchanges_of_mode * modes;
  const i64 small = sums_of_mode * modes + small_of_iteration;
  out.calls = exchanges + small + (exchanges + small);
  // Numbers that all have to know go through a tree, there and back, in so many steps.
  const double steps = std::ceil(std::log2(static_cast<double>(shared.processes)));
  const double summed = static_cast<double>(modes) * 8 * columns * (columns + 1);
  out.seconds = network.latency * (out.messages + steps * static_cast<double>(out.calls - exchanges)) +
                (out.bytes + 2 * summed) / network.rate;
  return out;
}

} // namespace td::plan
