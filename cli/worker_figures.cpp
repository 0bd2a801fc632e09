#include "worker_figures.hpp"

#include <numeric>

#include <fmt/format.h>

namespace cli {

namespace {

constexpr std::size_t phases = 4; // as td.h has them

WorkerFigures::Seconds mean(const std::vector<double> &all, std::size_t workers, std::size_t worker) {
  const std::size_t iterations = all.size() / (workers * phases);
  const std::size_t first = iterations > 1 ? 1 : 0;
  double sums[phases] = {};
  for (std::size_t k = first; k < iterations; ++k)
    for (std::size_t phase = 0; phase < phases; ++phase)
      sums[phase] += all[(k * workers + worker) * phases + phase];
  const auto count = static_cast<double>(iterations - first);
  return {sums[0] / count, sums[1] / count, sums[2] / count, sums[3] / count};
}

nlohmann::ordered_json document(const WorkerFigures::Seconds &s) {
  return {{"total", s.total()},
          {"compute", s.compute},
          {"host_device", s.host_device},
          {"exchange", s.exchange},
          {"idle", s.idle}};
}

std::int64_t sum(const std::vector<double> &counts) {
  return static_cast<std::int64_t>(std::accumulate(counts.begin(), counts.end(), 0.0));
}

} // namespace

std::vector<WorkerFigures> worker_figures(const td_report *report) {
  const std::vector<double> entries = series(td_report_get_series, report, "worker.entries");
  const std::vector<double> rows = series(td_report_get_series, report, "worker.rows");
  const std::vector<double> mttkrp = series(td_report_get_series, report, "worker.mttkrp_seconds");
  const std::vector<double> iteration = series(td_report_get_series, report, "worker.iteration_seconds");
  if (iteration.empty())
    return {};
  const auto order = static_cast<std::size_t>(get<std::int64_t>(td_report_get_i64, report, "order"));
  std::vector<WorkerFigures> workers(entries.size() / order);
  for (std::size_t k = 0; k < workers.size(); ++k) {
    const auto from = static_cast<std::ptrdiff_t>(k * order), to = static_cast<std::ptrdiff_t>((k + 1) * order);
    workers[k] = {{entries.begin() + from, entries.begin() + to},
                  {rows.begin() + from, rows.begin() + to},
                  mean(mttkrp, workers.size(), k),
                  mean(iteration, workers.size(), k)};
  }
  return workers;
}

nlohmann::ordered_json worker_document(const std::vector<WorkerFigures> &workers) {
  auto out = nlohmann::ordered_json::array();
  for (const WorkerFigures &w : workers)
    out.push_back({{"entries", w.entries},
                   {"rows", w.rows},
                   {"mttkrp_seconds", document(w.mttkrp)},
                   {"iteration_seconds", document(w.iteration)}});
  return out;
}

void print_workers(const std::vector<WorkerFigures> &workers, const char *what,
                   WorkerFigures::Seconds WorkerFigures::*seconds) {
  fmt::print("{:>6} {:>14} {:>12} {:>15} {:>12} {:>14} {:>12} {:>10}\n", "worker", "entries", "rows",
             fmt::format("{} ms", what), "compute ms", "host-device ms", "exchange ms", "idle ms");
  for (std::size_t k = 0; k < workers.size(); ++k) {
    const WorkerFigures::Seconds &s = workers[k].*seconds;
    fmt::print("{:>6} {:>14} {:>12} {:>15.3f} {:>12.3f} {:>14.3f} {:>12.3f} {:>10.3f}\n", k, sum(workers[k].entries),
               sum(workers[k].rows), 1e3 * s.total(), 1e3 * s.compute, 1e3 * s.host_device, 1e3 * s.exchange,
               1e3 * s.idle);
  }
}

} // namespace cli
