#include "figures.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "interrupt.hpp"
#include "iteration_times.hpp"
#include "median.hpp"
#include "peak_memory.hpp"
#include "scratch_folder.hpp"
#include "tensor_facts.hpp"

namespace cli {

namespace {

void stop_if_interrupted() {
  if (const int signal = InterruptGuard::signal(); signal != 0)
    throw Failure(static_cast<ExitCode>(128 + signal), "interrupted");
}

std::int32_t stop_on_signal(const td_report *, void *) { return InterruptGuard::signal(); }

SweepFigures sweep(td_context *context, const td_tensor *x, std::int64_t rank, std::int64_t repeats) {
  const Plan plan = make<Plan>(td_plan_create_for_tensor, context, x, rank, nullptr);
  const auto period = get<std::int64_t>(td_plan_get_i64, plan, "sweeps");
  // Of long modes the host takes longer to arrange a model than a GPU to find it, and nobody looks at this one.
  Options options{{"max_iters", std::to_string(iterations_for(repeats, period))},
                  {"tol", "0"},
                  {"exact_residual", "never"},
                  {"arrange", "0"},
                  {"fixsigns", "0"}};
  const Fitted run = cpals(context, x, rank, options, nullptr, stop_on_signal);
  stop_if_interrupted();

  SweepFigures out;
  out.rank = rank;
  IterationTimes times(run.report, period);
  std::vector<double> sums(times.iteration.size());
  for (const std::vector<double> &of_mode : times.mttkrp)
    std::transform(sums.begin(), sums.end(), of_mode.begin(), sums.begin(), std::plus<>());
  for (auto &of_mode : times.mttkrp)
    out.mttkrp.push_back(median(std::move(of_mode)));
  out.mttkrp_sum = median(std::move(sums));
  out.iteration = median(std::move(times.iteration));

  if (get<std::int64_t>(td_report_get_i64, run.report, "workers") > 1) {
    options.set("breakdown", "1");
    const Fitted measured = cpals(context, x, rank, options, nullptr, stop_on_signal);
    stop_if_interrupted();
    out.workers = worker_figures(measured.report);
    out.measured_iteration = median(IterationTimes(measured.report, period).iteration);
  }

  out.predicted = series(td_plan_get_series, plan, "mttkrp_seconds");
  out.predicted_mttkrp = get<double>(td_plan_get_f64, plan, "seconds.mttkrp");
  out.predicted_iteration = get<double>(td_plan_get_f64, plan, "seconds.iteration");
  return out;
}

/// Builds the tensor several times; the last is left in x.
BuildFigures build(td_context *context, const td_options *options, const EntryArrays &arrays, std::int64_t repeats,
                   Tensor &x) {
  BuildFigures out;
  std::vector<double> seconds;
  for (std::int64_t k = 0; k < repeats; ++k) {
    x.reset();
    std::optional<PeakMemory> memory;
    if (k == 0)
      memory.emplace();
    const Timer timer;
    x = arrays.build(context, options);
    seconds.push_back(timer.seconds());
    if (memory)
      out.peak = memory->growth();
    stop_if_interrupted();
  }
  out.seconds = median(std::move(seconds));
  return out;
}

/// The arrays end here.
Tensor built(td_context *context, const td_options *options, const EntryArrays arrays, const Wish &wish, Figures &out) {
  if (!wish.build)
    return arrays.build(context, options);
  Tensor x;
  out.build = build(context, options, arrays, wish.repeats, x);
  return x;
}

ReadFigures read(td_context *context, const td_options *options, const std::string &path, std::int64_t repeats) {
  ReadFigures out;
  out.file_format = std::filesystem::path(path).extension().string();
  out.bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  std::vector<double> seconds, build_seconds;
  for (std::int64_t k = 0; k < repeats; ++k) {
    const Timer timer;
    const Tensor x = make<Tensor>(td_tensor_read, context, path.c_str(), options);
    const double whole = timer.seconds();
    build_seconds.push_back(get<double>(td_tensor_get_f64, x, "seconds.build"));
    seconds.push_back(whole - build_seconds.back());
    stop_if_interrupted();
  }
  out.seconds = median(std::move(seconds));
  out.build = median(std::move(build_seconds));
  return out;
}

/// Files that are made here have their own dialect and index base, whatever the options say of the user's file.
Options without_dialect(const td_options *options) {
  Options out;
  for (const OptionRow &row : option_table())
    if (row.scope == "tensor" || row.name == "value_type")
      out.set(row.name, text(td_options_get_str, options, row.name.c_str()));
  return out;
}

std::vector<ReadFigures> read_files(td_context *context, const td_options *options, Tensor x, const Wish &wish) {
  const ScratchFolder folder(wish.scratch);
  const Options for_reading = without_dialect(options);
  const bool sparse = get<std::int64_t>(td_tensor_get_i64, x, "sparse") != 0;
  const std::vector<std::string> paths = {folder.file(sparse ? "x.tns" : "x.npy"), folder.file("x.tdb")};
  for (const std::string &path : paths)
    check(td_tensor_write(x, path.c_str(), nullptr));
  x.reset();
  std::vector<ReadFigures> out;
  for (const std::string &path : paths)
    out.push_back(read(context, for_reading, path, wish.repeats));
  return out;
}

} // namespace

Figures measure(td_context *context, const td_options *options, EntryArrays arrays, const Wish &wish,
                const Limits &limits) {
  Figures out;
  const bool sparse = arrays.sparse();
  Tensor x = built(context, options, std::move(arrays), wish, out);
  out.tensor = tensor_facts(x);
  out.description = text(td_tensor_describe, x);
  out.entries = get<std::int64_t>(td_tensor_nnz, x);
  out.bytes = get<std::int64_t>(td_tensor_get_i64, x, "bytes");
  if (out.entries == 0)
    throw Failure(exit_input, "there are no entries: nothing to measure");

  if (wish.mttkrp || wish.iteration) {
    const Floors floors(x, limits);
    for (const auto rank : wish.ranks) {
      out.sweeps.push_back(sweep(context, x, rank, wish.repeats));
      out.sweeps.back().floor = floors.of(rank);
    }
  }
  if (out.build && sparse) {
    const auto there =
        std::find_if(out.sweeps.begin(), out.sweeps.end(), [](const SweepFigures &s) { return s.rank == sweep_rank; });
    const double sum =
        there != out.sweeps.end() ? there->mttkrp_sum : sweep(context, x, sweep_rank, wish.repeats).mttkrp_sum;
    out.build->sweeps = out.build->seconds / sum;
  }
  if (wish.read)
    out.files = read_files(context, options, std::move(x), wish);
  return out;
}

} // namespace cli
