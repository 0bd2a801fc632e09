#include "plan/devices.hpp"

#include <algorithm>
#include <utility>

#include "core/buffer.hpp"
#include "plan/needs.hpp"

namespace td::plan {

i64 gathered_entries(const Layout &l) {
  const i64 slab = l.sparse ? 1 : l.nnz / l.slabs();
  return std::min(l.nnz, std::max(slab, span_entries(l.nnz) / slab * slab));
}

double entry_bytes(const Layout &l) {
  return static_cast<double>(size_of(l.type)) + (l.format == Format::blco  ? 8
                                                 : l.format == Format::coo ? 8 * static_cast<double>(l.dims.size())
                                                                           : 0);
}

namespace {

/// What part of the tensor each worker's GPU holds (tensor/part.hpp).
std::vector<double> parts_of(const Plan &plan, Holding holding) {
  const Layout &l = plan.layout;
  const auto workers = static_cast<std::size_t>(plan.workers);
  if (l.is_whole_on_each() && holding == Holding::gathered && l.nnz > 0) { // the largest of the processes'
    const i64 units = l.sparse ? l.nnz : l.slabs();
    return {static_cast<double>(part_of({0, units}, 0, l.shared.processes).size()) / static_cast<double>(units)};
  }
  if (workers == 1 || l.nnz == 0)
    return std::vector<double>(workers, 1.0);
  std::vector<double> parts(workers, 0.0);
  if (!l.sparse || holding == Holding::gathered) {
    const i64 units = l.sparse ? l.nnz : l.slabs();
    for (int w = 0; w < plan.workers; ++w)
      parts[static_cast<std::size_t>(w)] =
          static_cast<double>(part_of({0, units}, w, plan.workers).size()) / static_cast<double>(units);
    return parts;
  }
  double all = 0; // bytes of entries
  const auto add = [&](double bytes, const ModePlan &mode) {
    all += bytes;
    for (std::size_t w = 0; w < workers; ++w)
      parts[w] += bytes * mode.load[w] / static_cast<double>(l.nnz);
  };
  if (l.format != Format::sorted)
    add(1, plan.modes.front());
  for (std::size_t g = 0; g < l.copies.size(); ++g)
    add(l.copies[g].key_bytes + static_cast<double>(size_of(l.type)),
        plan.modes[static_cast<std::size_t>(l.partition[g].modes.front())]);
  for (double &part : parts)
    part /= all;
  return parts;
}

} // namespace

void place_on_devices(Plan &plan, const std::vector<i64> &already, const PlanRequest &request, Holding holding) {
  const Layout &l = plan.layout;
  if (l.in_place)
    return;
  double each = entry_bytes(l); // in all copies
  double longest = each;
  if (l.format == Format::sorted) {
    const double value = std::exchange(each, 0);
    longest = 0;
    for (const formats::CopySize &copy : l.copies) {
      each += copy.key_bytes + value;
      longest = std::max(longest, copy.key_bytes + value);
    }
  }
  const std::vector<double> parts = parts_of(plan, holding);
  const double gathered = holding == Holding::gathered ? longest * static_cast<double>(gathered_entries(l)) : 0;
  double placed = 0;
  double streamed = 0;
  for (std::size_t w = 0; w < parts.size(); ++w) {
    const double entries = each * static_cast<double>(l.nnz) * parts[w];
    const double all = l.bytes.stored + l.lent_bytes;
    const double stored = // lists are of what a worker has, or whole
        holding == Holding::gathered ? entries + all - each * static_cast<double>(l.nnz) : all * parts[w];
    const double room = static_cast<double>(request.backends[w]->room() + (already.empty() ? 0 : already[w]));
    if (stored <= room) {
      placed += stored + gathered;
      continue;
    }
    const double span = parts[w] * static_cast<double>(l.nnz);
    const double passing = gathered > 0 ? 3 * gathered
                                        : std::min(3 * longest * static_cast<double>(span_entries(saturated(span))),
                                                   std::max(room, 0.0) / 4);
    const double lists = stored - entries;
    const double kept = std::clamp(room - lists - passing, 0.0, entries);
    placed += lists + passing + kept;
    streamed += entries - kept;
  }
  plan.device.tensor = saturated(placed);
  plan.device.streamed = saturated(streamed);
}

double rate_of_fetching(kernels::Backend &backend) {
  kernels::DeviceBuffer to;
  for (i64 bytes = i64{32} << 20; bytes >= i64{1} << 20 && to.bytes() == 0; bytes /= 2)
    to = kernels::DeviceBuffer::of_free(backend, bytes, "bytes from the host");
  const i64 bytes = to.bytes();
  if (bytes == 0)
    return 0;
  auto from = Buffer<char>::zeros(bytes, "bytes on their way to the GPU");
  const auto pinned = backend.pin(from.data(), bytes);
  double least = 0;
  for (int round = 0; round < 3; ++round) { // the first one also makes what copies need
    backend.done(0);
    backend.mark(0);
    backend.fetch(0, to.data(), from.data(), bytes);
    backend.await(0);
    backend.mark(1);
    const double seconds = std::max(backend.seconds_between(0, 1), 1e-9);
    least = round == 0 ? seconds : std::min(least, seconds);
  }
  backend.done(0);
  return static_cast<double>(bytes) / least;
}

void predict_streaming(Plan &plan, double link) {
  const double streamed = static_cast<double>(plan.device.streamed) / plan.workers; // each GPU has a link
  const double copies = plan.layout.format == Format::sorted ? static_cast<double>(plan.layout.copies.size()) : 1;
  plan.seconds_mttkrp = 0;
  for (ModePlan &mode : plan.modes) {
    mode.seconds = link > 0 ? std::max(mode.seconds, streamed / copies / link) : 0;
    plan.seconds_mttkrp += mode.seconds;
  }
}

} // namespace td::plan
