#include "plan/exchange.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/memory_order.hpp"
#include "plan/devices.hpp"

namespace td::plan {

namespace {

// Functions of the communicator, before each of which processes agree that none has failed: an all-reduce of one
// number. An update of a mode sends sums to owners and rows back, and adds up the columns' norms and the Gram matrix.
// After the last, the fit is added up, and process 0 tells whether it is computed anew and what came of the iteration.
// A callback, of any process, decides by one more whether it was the last.
constexpr i64 exchanges_of_mode = 2;
constexpr i64 sums_of_mode = 2;
constexpr i64 sums_of_fit = 1;
constexpr i64 decisions_of_iteration = 2;

/// Whether GPUs exchange by themselves, where that can be: sums go with the rows then.
bool by_link(const PlanRequest &request) {
  return is_gpu(request) && request.backends.front()->exchange() != kernels::Exchange::host;
}

} // namespace

Network::Network(const Options &options) : latency(options.real("link_latency")) {
  if (const double given = options.real("link_rate"); given > 0) {
    rate = given;
    assumed = false;
  }
}

ProcessExchange process_exchange(const Layout &l, const PlanRequest &request, const Asked &asked,
                                 const Network &network) {
  const std::vector<int> updated = UpdateOrder(request.options, static_cast<int>(l.dims.size())).updated_modes;
  const SharedRows &shared = l.shared;
  const auto columns = static_cast<double>(request.rank);
  const auto row = static_cast<double>(size_of(l.type));
  const double sum = asked.tensor.precision(l.type).f64_sums ? 8 : row;
  ProcessExchange out;
  for (const int m : updated) {
    const auto mode = static_cast<std::size_t>(m);
    out.bytes +=
        columns * (static_cast<double>(shared.lent[mode]) * sum + static_cast<double>(shared.shared[mode]) * row);
    out.messages += 2 * static_cast<double>(shared.partners[mode]);
  }
  const auto modes = static_cast<i64>(updated.size());
  // Numbers that all have to know go through a tree, there and back, in so many steps.
  const double steps = std::ceil(std::log2(static_cast<double>(shared.processes)));
  const double summed = static_cast<double>(modes) * 8 * columns * (columns + 1);
  if (by_link(request)) { // each process sends its numbers to each other one
    const double others = shared.processes - 1;
    out.calls = 2 * decisions_of_iteration;
    out.seconds = network.latency *
                      (out.messages + static_cast<double>(modes) * others + steps * static_cast<double>(out.calls)) +
                  (out.bytes + others * summed) / network.rate;
    return out;
  }
  const i64 exchanges = exchanges_of_mode * modes;
  const i64 small = sums_of_mode * modes + sums_of_fit + decisions_of_iteration;
  out.calls = exchanges + small + (exchanges + small);
  out.seconds = network.latency * (out.messages + steps * static_cast<double>(out.calls - exchanges)) +
                (out.bytes + 2 * summed) / network.rate;
  return out;
}

kernels::ExchangeChoice exchange_in(const PlanRequest &request) {
  std::vector<kernels::Device *> devices;
  for (const auto &backend : request.backends)
    devices.push_back(backend.get());
  return kernels::exchange_between(devices);
}

namespace {

/// What an update by QR decompositions sends besides, of f64 numbers: sums of a mode for more columns than the rank,
/// and rows of its orthogonal factor, with a triangle to each process (solvers/qr_update.cpp).
double qr_exchange(const Layout &l, const std::vector<int> &updated, std::size_t mode, i64 rank) {
  double combinations = 1;
  for (std::size_t m = 0; m < l.dims.size(); ++m)
    if (m != mode)
      combinations *= static_cast<double>(std::min(l.dims[m], rank));
  const double sums = std::ceil(combinations / static_cast<double>(rank)) - 1;
  double numbers = sums * static_cast<double>(l.shared.lent[mode] * rank);
  if (updated.size() > 1) // else it is in no update of another
    numbers += static_cast<double>(l.shared.shared[mode] * std::min(l.dims[mode], rank) +
                                   (l.shared.processes - 1) * rank * rank);
  return 8 * numbers;
}

/// Bytes a second that one device copies out of another's memory, measured; 0 where too little memory is free for it.
double rate_between(kernels::Backend &to, kernels::Backend &from) {
  const i64 bytes = i64{32} << 20;
  const auto target = kernels::DeviceBuffer::of_free(to, bytes, "bytes of another GPU");
  const auto source = kernels::DeviceBuffer::of_free(from, bytes, "bytes for another GPU");
  if (target.bytes() == 0 || source.bytes() == 0 || !to.reach(from))
    return 0;
  from.set_zero({source.data(), ValueType::f64, 1, bytes / 8, bytes / 8});
  from.raise(kernels::Signal::written);
  to.wait_for(from, kernels::Signal::written);
  double least = 0;
  for (int round = 0; round < 3; ++round) {
    to.mark(0);
    to.copy_from(from, target.data(), source.data(), bytes);
    to.mark(1);
    const double seconds = std::max(to.seconds_between(0, 1), 1e-9);
    least = round == 0 ? seconds : std::min(least, seconds);
  }
  return static_cast<double>(bytes) / least;
}

/// The rate between GPUs that are not there is that of two H200 by NVLink (bench/results): it is said to be assumed.
double rate_of_link(Plan &plan, const PlanRequest &request, kernels::Exchange exchange) {
  constexpr double of_nvlink = 3.95e11;
  if (const double given = request.options.real("link_rate"); given > 0)
    return given;
  if (exchange == kernels::Exchange::host)
    return 0;
  if (request.backends[0] != request.backends[1])
    return rate_between(*request.backends[0], *request.backends[1]);
  plan.layout.assumptions.push_back(fmt::format(
      "a GPU receives {:.0f} GB/s from others, as by NVLink between two H200 (option 'link_rate')", of_nvlink / 1e9));
  return of_nvlink;
}

/// Bytes that all workers together gather in an iteration: the entries of each MTTKRP, of a sorted copy those of the
/// modes that it serves. Of a dense tensor that is what reads it, or, if each worker computes rows of its own, of that
/// what adds up slabs.
double gathered_bytes(const Layout &l, const SweepTree &tree, bool deterministic) {
  const auto nnz = static_cast<double>(l.nnz);
  if (l.format == Format::sorted) {
    double bytes = 0;
    for (const formats::CopySize &copy : l.copies)
      bytes += copy.key_bytes + entry_bytes(l);
    return bytes * nnz;
  }
  if (l.sparse)
    return static_cast<double>(l.dims.size()) * entry_bytes(l) * nnz;
  const int slowest = kernels::slowest_mode({l.dims, l.type, nullptr, l.strides});
  double times = 0;
  for (i64 step = 0; step < tree.period(); ++step) {
    const PartialProduct *const p = tree.at(step);
    const int mode = tree.updated()[static_cast<std::size_t>(step) % tree.updated().size()];
    const bool reads = p == nullptr || tree.reads(step);
    const bool own_slabs = !deterministic && (p == nullptr ? mode == slowest : p->keeps(slowest));
    times += reads && !own_slabs ? 1 : 0;
  }
  return times * static_cast<double>(tree.updated().size()) / static_cast<double>(tree.period()) * entry_bytes(l) * nnz;
}

/// Sums of rows that others own go to them, and the updated rows come back; as much comes and goes of its own rows. The
/// sums of all processes besides, of rank x rank numbers a mode, are not counted as bytes.
void predict_shared_exchange(Plan &plan, const PlanRequest &request, const Asked &asked, const SweepTree &tree,
                             Holding holding) {
  plan.exchange = {"processes", "by the functions of the caller's communicator"};
  if (is_gpu(request))
    plan.exchange.why = request.backends.front()->exchange() == kernels::Exchange::host
                            ? "by way of the host, with the functions of the caller's communicator"
                            : "by NCCL where it connects the GPUs, else by way of the host";
  const Layout &l = plan.layout;
  const auto order = static_cast<int>(l.dims.size());
  const std::vector<int> updated = UpdateOrder(request.options, order).updated_modes;
  if (l.is_whole_on_each()) { // own rows of each factor, and of the last product, to each other process
    double rows = static_cast<double>(l.stored_dims[static_cast<std::size_t>(updated.back())]);
    for (const int m : updated)
      rows += static_cast<double>(l.stored_dims[static_cast<std::size_t>(m)]);
    const double processes = l.shared.processes;
    const bool gathers = holding == Holding::gathered;
    double bytes = rows * static_cast<double>(plan.rank) * static_cast<double>(size_of(l.type));
    if (gathers)
      bytes += gathered_bytes(l, tree, asked.solver.deterministic);
    plan.layout.assumptions.push_back(fmt::format(
        "each process holds all of the tensor (option 'deterministic'){}, and has equally many rows to "
        "compute and to send",
        gathers ? ", of which each GPU holds a part and gets the rest from the others, span after span" : ""));
    plan.exchanged = saturated(bytes * (processes - 1) / processes);
    return;
  }
  const Network network(request.options);
  ProcessExchange exchange = process_exchange(l, request, asked, network);
  for (const int m : updated)
    if (asked.solver.solve == Solve::qr) {
      const double more = qr_exchange(l, updated, static_cast<std::size_t>(m), plan.rank);
      exchange.bytes += more;
      exchange.seconds += more / network.rate;
    }
  plan.exchanged = saturated(exchange.bytes);
  plan.exchange_messages = saturated(exchange.messages);
  plan.exchange_calls = exchange.calls;
  plan.seconds_exchange = exchange.seconds;
  plan.layout.assumptions.push_back(fmt::format(
      "a message between processes takes {:.3g} microseconds (option 'link_latency'), and each sends {:.4g} GB/s{}",
      1e6 * network.latency, network.rate / 1e9,
      network.assumed ? ", as over a network of 100 Gbit/s (option 'link_rate')" : ""));
}

/// Seconds of an exchange of `bytes` bytes of the rows of a mode that nothing hides, of `all` seconds. Long modes are
/// exchanged chunk by chunk beside their MTTKRP (solvers/sweep.cpp): then the last chunk is left, or what MTTKRP is too
/// short for; and what goes on beside it passes through the same memory, which reads it and writes as much.
double seconds_left(const Plan &plan, const Asked &asked, std::size_t mode, double bytes, double all) {
  const Layout &l = plan.layout;
  if (l.format != Format::sorted || asked.solver.overlap == Overlap::off ||
      l.copies[l.group_of(static_cast<int>(mode))].tiles > 1)
    return all;
  const i64 rows = (l.stored_dims[mode] + plan.workers - 1) / plan.workers;
  const double ratio = gather_ratio(l.nnz, l.stored_dims[mode], static_cast<int>(l.dims.size()), plan.workers);
  const double beside =
      1 - gather_chunks(Overlap::automatic, rows, plan.rank * static_cast<i64>(size_of(l.type)), ratio).last();
  const double in_memory = plan.rates.read > 0 ? 2 * bytes / plan.rates.read : 0;
  return all - beside * (std::min(all, plan.modes[mode].seconds) - in_memory);
}

/// Seconds that a mode's exchanges take beside their bytes: kernels that start, and GPUs that wait for each other. On
/// two H200 it is what iterations of small dense tensors, and of nell2, took longer than the rest (bench/results).
constexpr double start_of_exchanges = 40e-6;

} // namespace

void predict_exchange(Plan &plan, const PlanRequest &request, const Asked &asked, const SweepTree &tree,
                      Holding holding) {
  if (plan.layout.shared.processes > 1)
    return predict_shared_exchange(plan, request, asked, tree, holding);
  const bool deterministic = asked.solver.deterministic;
  if (!is_gpu(request) || plan.workers == 1) {
    plan.exchange = {"none", plan.workers == 1 ? "one worker" : "workers share the host's memory"};
    return;
  }
  const kernels::ExchangeChoice exchange = exchange_in(request);
  plan.exchange = {std::string(name_of(exchange.way)), exchange.why};
  const Layout &l = plan.layout;
  const bool whole = partitions_rows(l.format, asked.tensor.sharding, deterministic, holding);
  const double others = (plan.workers - 1.0) / plan.workers;
  const double rate = rate_of_link(plan, request, exchange.way);
  const double each = rate > 0 ? 1 / rate : 0; // seconds of a byte
  double bytes = 0;
  for (std::size_t m = 0; m < l.stored_dims.size(); ++m) {
    const bool by_rows = l.format == Format::sorted && !l.partition[l.group_of(static_cast<int>(m))].shared;
    const double passes = deterministic || by_rows || whole ? 1 : 2;
    const double of_mode = passes * others * static_cast<double>(l.stored_dims[m]) * static_cast<double>(plan.rank) *
                           static_cast<double>(size_of(l.type));
    bytes += of_mode;
    plan.seconds_exchange += by_rows && !deterministic && holding != Holding::gathered && rate > 0
                                 ? seconds_left(plan, asked, m, of_mode, of_mode * each)
                                 : of_mode * each;
    plan.seconds_exchange += rate > 0 ? start_of_exchanges : 0;
  }
  if (holding == Holding::gathered) {
    const double gathered = others * gathered_bytes(l, tree, deterministic);
    bytes += gathered;
    plan.seconds_exchange += gathered * each;
  }
  plan.exchanged = saturated(bytes);
}

} // namespace td::plan
