// How figures are printed: as JSON, and as tables for people.
#include <fmt/format.h>

#include "figures.hpp"

namespace cli {

namespace {

/// One number of the floor of each mode.
std::vector<double> of_modes(const std::vector<Floor> &floor, double Floor::*number) {
  std::vector<double> out;
  for (const Floor &f : floor)
    out.push_back(f.*number);
  return out;
}

double total_seconds(const std::vector<Floor> &floor) {
  double sum = 0;
  for (const Floor &f : floor)
    sum += f.seconds;
  return sum;
}

double giga_entries_per_second(double entries, double seconds) { return entries / seconds / 1e9; }

/// A prediction and its ratio to what was measured, in columns of so many characters; "-" where a plan knows none.
std::string prediction(double predicted, double measured, int width) {
  return predicted > 0 ? fmt::format("{:>{}.3f} {:>9.2f}", 1e3 * predicted, width, predicted / measured)
                       : fmt::format("{:>{}} {:>9}", "-", width, "-");
}

void print_row(std::int64_t rank, const std::string &mode, double seconds, double predicted, double floor,
               double entries) {
  fmt::print("{:>6} {:>5} {:>12.3f} {} {:>12.3f} {:>9.2f} {:>12.3f}\n", rank, mode, 1e3 * seconds,
             prediction(predicted, seconds, 13), 1e3 * floor, floor / seconds,
             giga_entries_per_second(entries, seconds));
}

void print_mttkrp(const std::vector<SweepFigures> &sweeps, double entries) {
  fmt::print("\n{:>6} {:>5} {:>12} {:>13} {:>9} {:>12} {:>9} {:>12}\n", "rank", "mode", "MTTKRP ms", "predicted ms",
             "ratio", "floor ms", "floor/ms", "G entries/s");
  for (const SweepFigures &s : sweeps) {
    for (std::size_t m = 0; m < s.mttkrp.size(); ++m)
      print_row(s.rank, fmt::format("{}", m), s.mttkrp[m], s.predicted[m], s.floor[m].seconds, entries);
    print_row(s.rank, "all", s.mttkrp_sum, s.predicted_mttkrp, total_seconds(s.floor),
              entries * static_cast<double>(s.mttkrp.size()));
  }
}

void print_iterations(const std::vector<SweepFigures> &sweeps) {
  fmt::print("\n{:>6} {:>18} {:>13} {:>9} {:>12}\n", "rank", "iteration ms", "predicted ms", "ratio", "of it MTTKRP");
  for (const SweepFigures &s : sweeps)
    fmt::print("{:>6} {:>18.3f} {} {:>11.0f}%\n", s.rank, 1e3 * s.iteration,
               prediction(s.predicted_iteration, s.iteration, 13), 100 * s.mttkrp_sum / s.iteration);
}

/// The iterations of both runs say what measuring costs.
void print_breakdown(const std::vector<SweepFigures> &sweeps, const Wish &wish) {
  for (const SweepFigures &s : sweeps) {
    if (s.workers.empty())
      continue;
    fmt::print(
        "\nworkers   at rank {}: means of iterations that took {:.1f} % of the time of those above, as they were "
        "measured; entries and rows of all modes\n",
        s.rank, 100 * s.measured_iteration / s.iteration);
    if (wish.mttkrp)
      print_workers(s.workers, "MTTKRP", &WorkerFigures::mttkrp);
    if (wish.iteration)
      print_workers(s.workers, "iteration", &WorkerFigures::iteration);
  }
}

void print_build(const BuildFigures &b, double entries, double bytes) {
  fmt::print("\nbuild     {:.1f} ms, {:.1f} ns an entry", 1e3 * b.seconds, 1e9 * b.seconds / entries);
  if (b.sweeps > 0)
    fmt::print(", {:.2f} MTTKRPs of all modes at rank {}", b.sweeps, sweep_rank);
  fmt::print("\nmemory    {:.1f} MB, {:.1f} bytes an entry", bytes / 1e6, bytes / entries);
  if (b.peak)
    fmt::print("; at the peak of building {:.1f} MB beside the caller's arrays", static_cast<double>(*b.peak) / 1e6);
  fmt::print("\n");
}

void print_files(const std::vector<ReadFigures> &files) {
  fmt::print("\n");
  for (const ReadFigures &f : files)
    fmt::print("read      {} of {:.1f} MB: {:.1f} ms, {:.0f} MB/s; then building {:.1f} ms\n", f.file_format,
               static_cast<double>(f.bytes) / 1e6, 1e3 * f.seconds, static_cast<double>(f.bytes) / f.seconds / 1e6,
               1e3 * f.build);
}

Json known(double seconds) { return seconds > 0 ? Json(seconds) : Json(nullptr); }

Json known(const std::vector<double> &seconds) {
  Json out = Json::array();
  for (const double s : seconds)
    out.push_back(known(s));
  return out;
}

Json sweep_document(const SweepFigures &s, const Wish &wish, double entries) {
  Json out = {{"rank", s.rank}};
  if (wish.mttkrp)
    out["mttkrp"] = {{"seconds", s.mttkrp},
                     {"sum", s.mttkrp_sum},
                     {"predicted_seconds", known(s.predicted)},
                     {"predicted_sum", known(s.predicted_mttkrp)},
                     {"floor_seconds", of_modes(s.floor, &Floor::seconds)},
                     {"floor_bytes", of_modes(s.floor, &Floor::bytes)},
                     {"floor_operations", of_modes(s.floor, &Floor::operations)},
                     {"floor_over_measured", total_seconds(s.floor) / s.mttkrp_sum},
                     {"giga_entries_per_second",
                      giga_entries_per_second(entries * static_cast<double>(s.mttkrp.size()), s.mttkrp_sum)}};
  if (wish.iteration) {
    out["iteration_seconds"] = s.iteration;
    out["predicted_iteration_seconds"] = known(s.predicted_iteration);
  }
  if (!s.workers.empty())
    out["breakdown"] = {{"iteration_seconds", s.measured_iteration}, {"workers", worker_document(s.workers)}};
  return out;
}

} // namespace

void Figures::print(const Wish &wish) const {
  fmt::print("\n{}\n{}\n", name, description);
  const auto n = static_cast<double>(entries);
  if (wish.mttkrp)
    print_mttkrp(sweeps, n);
  if (wish.iteration)
    print_iterations(sweeps);
  print_breakdown(sweeps, wish);
  if (build)
    print_build(*build, n, static_cast<double>(bytes));
  if (wish.read)
    print_files(files);
}

Json Figures::document(const Wish &wish) const {
  Json out = {{"name", name}, {"tensor", tensor}, {"bytes", bytes}, {"ranks", Json::array()}, {"files", Json::array()}};
  for (const SweepFigures &s : sweeps)
    out["ranks"].push_back(sweep_document(s, wish, static_cast<double>(entries)));
  if (build) {
    out["build"] = {{"seconds", build->seconds},
                    {"nanoseconds_per_entry", 1e9 * build->seconds / static_cast<double>(entries)}};
    out["build"]["sweeps_at_rank_32"] = build->sweeps > 0 ? Json(build->sweeps) : Json(nullptr);
    out["build"]["peak_bytes"] = build->peak ? Json(*build->peak) : Json(nullptr);
  }
  for (const ReadFigures &f : files)
    out["files"].push_back({{"file_format", f.file_format},
                            {"bytes", f.bytes},
                            {"seconds", f.seconds},
                            {"build_seconds", f.build},
                            {"bytes_per_second", static_cast<double>(f.bytes) / f.seconds}});
  return out;
}

} // namespace cli
