// A plan for people to read.
#include <algorithm>
#include <bit>

#include <fmt/ranges.h>

#include "core/sentence.hpp"
#include "plan/plan.hpp"

namespace td::plan {

namespace {

std::string seconds_text(double seconds) {
  if (seconds <= 0)
    return "not known";
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

std::string line(std::string_view name, const std::string &text) { return fmt::format("{:<11} {}\n", name, text); }

std::string choice(std::string_view what, const std::string &why) {
  return why.empty() ? std::string(what) : fmt::format("{}: {}", what, why);
}

std::string place_text(const PlaceBytes &bytes, bool exists) {
  return fmt::format("tensor {}, {} {}, CP-ALS {}; at most {}", size_text(bytes.tensor),
                     exists ? "building it took" : "building it", size_text(bytes.building), size_text(bytes.solver),
                     size_text(exists ? saturated_sum(bytes.tensor, bytes.solver) : bytes.peak()));
}

std::string load_text(const ModePlan &mode) {
  if (mode.load.size() == 1)
    return "";
  std::string text = fmt::format("; entries a worker {:.0f}, the largest {:.1f} % above the mean",
                                 fmt::join(mode.load, " + "), 100 * mode.imbalance);
  if (mode.split_rows > 0)
    text += fmt::format(", {} row{} split, else {:.1f} %", mode.split_rows, mode.split_rows == 1 ? "" : "s",
                        100 * mode.unsplit);
  return text;
}

std::string workspace_text(const ModePlan &mode) {
  return mode.workspace > 0 ? fmt::format("; workspace {}", size_text(saturated(mode.workspace))) : "";
}

std::string scaling_text(const Plan &plan) {
  const auto seconds = [&](int processes) {
    return seconds_text(plan.scaling[static_cast<std::size_t>(std::countr_zero(static_cast<u64>(processes)))]);
  };
  return fmt::format("of 1, 2, 4, ... processes exchange takes no longer than work up to {}, {} an iteration; {} are "
                     "fastest, {}",
                     plan.scales_to, seconds(plan.scales_to), plan.fastest_processes, seconds(plan.fastest_processes));
}

/// What is decided, and why.
std::string decisions(const Plan &plan) {
  const Layout &l = plan.layout;
  std::string text = line(
      "tensor", fmt::format("{} {}, {}{}, {}", l.sparse ? "sparse" : "dense", fmt::join(l.dims, " x "),
                            l.sparse ? count_text(plan.entries(), "entry", "entries")
                                     : count_text(plan.entries(), "element", "elements"),
                            l.shared.processes > 1 ? fmt::format(" of which {} here", l.nnz) : "", name_of(l.type)));
  text += line("rank", fmt::format("{}", plan.rank));
  text += line("devices", plan.devices);
  text += line("format", choice(name_of(l.format), l.why.format));
  text += line("groups", choice(l.groups, l.why.groups));
  text += line("rows", choice(l.rows, l.why.rows));
  text += line("tiles", choice(l.tiles, l.why.tiles));
  text += line("conflicts", choice(plan.conflicts.what, plan.conflicts.why));
  if (l.format == Format::dense)
    text += line("kernel", choice(plan.dense_kernel.what, plan.dense_kernel.why));
  text += line("precision", choice(plan.precision.what, plan.precision.why));
  text += line("sharding", choice(plan.sharding.what, plan.sharding.why));
  if (l.shared.processes > 1)
    text +=
        line("exchange",
             fmt::format("{} of {}{}; this one sends {} to others in an iteration, in {} messages, {}",
                         plan.exchange.what, l.shared.blocks(),
                         l.shared.blocks() < l.shared.processes ? fmt::format(", {} workers in all", l.shared.processes)
                                                                : "",
                         size_text(plan.exchanged), plan.exchange_messages, seconds_text(plan.seconds_exchange)));
  else if (plan.exchanged > 0)
    text += line("exchange", fmt::format("{}; each GPU receives {} in an iteration, {} not beside MTTKRP",
                                         choice(plan.exchange.what, plan.exchange.why), size_text(plan.exchanged),
                                         seconds_text(plan.seconds_exchange)));
  return text;
}

/// What it takes and what there is of it.
std::string memory(const Plan &plan) {
  std::string text = line("host", place_text(plan.host, plan.layout.exists));
  if (plan.device.peak() > 0)
    text += line("device", place_text(plan.device, plan.layout.exists));
  if (plan.device.streamed > 0)
    text +=
        line("streamed", fmt::format("{} of keys and values have no room on the GPU and come from the host in every "
                                     "sweep",
                                     size_text(plan.device.streamed)));
  text += line("CP-ALS", plan.solver.text());
  text += line(plan.fits ? "fits" : "DOES NOT FIT",
               plan.available.bytes == std::numeric_limits<i64>::max()
                   ? "what is available is not known"
                   : fmt::format("{} {}available{}", size_text(plan.available.bytes),
                                 plan.layout.exists ? "besides the tensor " : "",
                                 plan.available.limited_by_option ? ", by option 'memory_limit'" : ""));
  return text;
}

/// What modes and iterations take, by which rates.
std::string times(const Plan &plan) {
  std::string text;
  for (std::size_t m = 0; m < plan.modes.size(); ++m) {
    const ModePlan &mode = plan.modes[m];
    text += line(fmt::format("mode {}", m),
                 fmt::format("{}; {}{}{}; {}", mode.kernel.empty() ? "kernel not named by the backend" : mode.kernel,
                             mode.conflicts.empty() ? "conflicts not named" : mode.conflicts, load_text(mode),
                             workspace_text(mode), seconds_text(mode.seconds)));
  }
  text +=
      line("iteration",
           plan.seconds_mttkrp > 0
               ? fmt::format("{}: MTTKRP {}, {}the rest {}",
                             seconds_text(plan.seconds_mttkrp + plan.seconds_update + plan.seconds_exchange),
                             seconds_text(plan.seconds_mttkrp),
                             plan.seconds_exchange > 0 ? "exchange " + seconds_text(plan.seconds_exchange) + ", " : "",
                             seconds_text(plan.seconds_update))
               : "time not known");
  if (!plan.scaling.empty())
    text += line("scaling", scaling_text(plan));
  if (plan.rates.read > 0)
    text += line("machine",
                 fmt::format("reads {:.1f} GB/s; factor rows {:.1f} and {:.1f} GB/s from caches, {:.1f} from memory; "
                             "{:.0f} GFLOP/s; {}",
                             plan.rates.read / 1e9, plan.rates.near_rows / 1e9, plan.rates.middle_rows / 1e9,
                             plan.rates.far_rows / 1e9, plan.rates.operations / 1e9, plan.rates_why));
  return text;
}

} // namespace

i64 Plan::entries() const noexcept { return layout.shared.entries > 0 ? layout.shared.entries : layout.nnz; }

std::string Plan::describe() const {
  std::string text = decisions(*this) + memory(*this) + times(*this);
  for (const std::string &assumption : layout.assumptions)
    text += line("assumed", assumption);
  text.pop_back();
  return text;
}

} // namespace td::plan
