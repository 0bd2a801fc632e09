// td cpd: fits a ktensor to the tensor in a file.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/ranges.h>

#include "commands.hpp"
#include "components.hpp"
#include "flags.hpp"
#include "interrupt.hpp"
#include "names.hpp"
#include "output.hpp"
#include "processes.hpp"
#include "progress.hpp"
#include "tensor_facts.hpp"
#include "trial.hpp"
#include "worker_figures.hpp"

namespace cli {

namespace {

struct CpdFlags {
  std::string file, start, output, compare, report;
  std::int64_t rank = 0;
  std::int64_t every = 1;
  std::int64_t leading = 5;
  WorkFlags work;
};

struct Result : Fitted {
  explicit Result(Fitted fitted) : Fitted(std::move(fitted)) {}
  double read_seconds = 0;
  std::optional<double> score;
  int signal = 0;
  bool wrote_model = false, wrote_report = false;
  std::optional<Failure> failure; // the first after the run, whose summary comes all the same

  /// Whether a call after the run succeeded.
  bool is_done(td_status status) {
    if (status < 0 && !failure)
      failure.emplace(exit_code(status), last_error());
    return status >= 0;
  }
};

/// Says before the work, not after it, that a report's name tells no format.
void require_report_name(const std::string &path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (!path.empty() && ending != ".html" && ending != ".htm" && ending != ".json")
    throw Failure(exit_usage, fmt::format("cannot write {}: a report's name ends with .html, .htm or .json", path));
}

double number(const Result &r, const char *key) { return get<double>(td_report_get_f64, r.report, key); }
std::int64_t count(const Result &r, const char *key) { return get<std::int64_t>(td_report_get_i64, r.report, key); }
std::string word(const Result &r, const char *key) { return text(td_report_get_str, r.report, key); }

/// The ktensor that the model is compared with; none where none is asked for.
Ktensor read_compared(const std::string &file, td_context *context, const td_tensor *x) {
  if (file.empty())
    return {};
  Ktensor k = make<Ktensor>(td_ktensor_read, context, file.c_str());
  if (const auto came = dims_of(k.get()), expected = dims_of(x); came != expected)
    throw Failure(exit_input, fmt::format("--compare {}: dims {}; expected the tensor's {}", file,
                                          fmt::join(came, " x "), fmt::join(expected, " x ")));
  return k;
}

/// Runs CP-ALS. What it says of the start and the checkpoint, which it knows by other names, is said of flags and
/// files.
Fitted run_cpals(const CpdFlags &flags, td_context *context, const td_tensor *x, const Options &options,
                 Progress &progress) {
  Ktensor start;
  if (!flags.start.empty())
    start = make<Ktensor>(td_ktensor_read, context, flags.start.c_str());
  try {
    return cpals(context, x, flags.rank, options, start, Progress::callback, &progress);
  } catch (const tdpp::Error &e) {
    const std::string_view sentence = e.what();
    for (const auto &[name, said] : {std::pair<std::string_view, std::string>{"init: ", "--start " + flags.start},
                                     {"resume: ", "--resume " + text(td_options_get_str, options, "resume")}})
      if (sentence.starts_with(name))
        throw Failure(exit_code(e.status()), fmt::format("{}: {}", said, sentence.substr(name.size())));
    throw;
  }
}

Result fit(const CpdFlags &flags, td_context *context, const td_tensor *x, const td_options *options) {
  const bool first = Processes::all().first();
  std::FILE *out = flags.work.quiet || !first ? nullptr : flags.work.json ? stderr : stdout;
  Progress progress(out, flags.every);
  const InterruptGuard guard;
  const bool shared = Processes::all().shared();
  Options asked = copy(options);
  if (shared && !flags.work.table.given().contains("model"))
    asked.set("model", "distributed");
  Result result(run_cpals(flags, context, x, asked, progress));
  result.signal = InterruptGuard::signal();
  progress.finish(result.report);
  const bool in_blocks = shared && text(td_options_get_str, asked, "model") == "distributed";
  if (!flags.output.empty() && (first || in_blocks))
    result.wrote_model = result.is_done(td_ktensor_write(result.model, flags.output.c_str(), options));
  if (in_blocks && (!flags.report.empty() || (flags.leading > 0 && has_labels(result.model)))) // what shows its rows
    result.model = make<Ktensor>(td_ktensor_gather, static_cast<const td_ktensor *>(result.model));
  return result;
}

/// A word as a shell takes it literally.
std::string quoted(const std::string &word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos)
    return word;
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// The command that repeats a run, without what it writes.
std::string command(const CpdFlags &flags) {
  std::string text = fmt::format("td cpd {} --rank {}", quoted(flags.file), flags.rank);
  if (!flags.start.empty())
    text += " --start " + quoted(flags.start);
  if (flags.work.devices != "auto")
    text += " --devices " + quoted(flags.work.devices);
  const Json given = flags.work.table.given();
  for (const auto &[name, value] : given.items())
    if (name != "checkpoint" && name != "file_format")
      text += fmt::format(" {} {}", flag_name(name), quoted(value.get<std::string>()));
  return text;
}

void write_report(const CpdFlags &flags, td_context *context, const td_tensor *x, const td_options *options,
                  Result &r) {
  Options shown = copy(options);
  if (!flags.work.table.given().contains("report_command"))
    shown.set("report_command", command(flags));
  r.wrote_report = r.is_done(td_report_write(context, r.report, x, r.model, shown, flags.report.c_str()));
}

Json document(const CpdFlags &flags, const td_tensor *x, const Result &r) {
  Json seconds = {{"read", r.read_seconds}, {"total", number(r, "seconds")}};
  for (const char *stage : {"init", "mttkrp", "solve", "fit"})
    seconds[stage] = number(r, (std::string("seconds.") + stage).c_str());
  Json history;
  for (const char *key :
       {"fit", "fit_error", "fit_change", "residual", "seconds", "effective_rank", "condition", "mttkrp_seconds"})
    history[key] = series(td_report_get_series, r.report, key);
  Json out = {
      {"file", flags.file}, {"tensor", tensor_facts(x)}, {"rank", flags.rank}, {"options", flags.work.table.given()}};
  for (const char *key : {"devices", "format", "init", "stop_reason"})
    out[key] = word(r, key);
  for (const char *key : {"iterations", "resumed_from", "workers", "threads", "effective_rank", "exact_residuals"})
    out[key] = count(r, key);
  out["converged"] = count(r, "converged") != 0;
  out["interrupted"] = r.signal != 0;
  for (const char *key :
       {"fit", "explained", "relative", "residual", "fit_error", "fit_change", "fit_growth", "condition"})
    out[key] = number(r, key);
  out["weights"] = weights_of(r.model);
  if (flags.leading > 0 && has_labels(r.model)) {
    out["modes"] = mode_names(r.model);
    out["components"] = components_of(r.model, flags.leading);
  }
  if (r.score)
    out["score"] = *r.score;
  out["seconds"] = seconds;
  if (const auto workers = worker_figures(r.report); !workers.empty())
    out["breakdown"] = worker_document(workers);
  out["history"] = history;
  out["output"] = flags.output;
  out["report"] = flags.report;
  out["creeping"] = word(r, "creeping");
  out["checkpoint_error"] = word(r, "checkpoint_error");
  return out;
}

std::string reason(const CpdFlags &flags, const Result &r) {
  const std::string stop = word(r, "stop_reason");
  if (stop == "callback")
    return "interrupted";
  const Options options = flags.work.table.options();
  const std::string value = text(td_options_get_str, options, stop.c_str());
  return stop == "tol" ? fmt::format("the fit changed by less than tol = {}", value)
                       : fmt::format("{} = {} reached", stop, value);
}

void print_weights(const std::vector<double> &w) {
  constexpr std::size_t shown = 24;
  fmt::print("weights   ");
  for (std::size_t r = 0; r < w.size() && r < shown; ++r)
    fmt::print("{}{:.6e}", r == 0 ? "" : r % 6 == 0 ? "\n          " : "  ", w[r]);
  if (w.size() > shown)
    fmt::print("\n          and {} smaller ones", w.size() - shown);
  fmt::print("\n");
}

void print_summary(const CpdFlags &flags, const Result &r) {
  fmt::print("fit       {:.6e}   explained {:.6e}   relative error {:.6e}\n", number(r, "fit"), number(r, "explained"),
             number(r, "relative"));
  const std::int64_t iterations = count(r, "iterations");
  fmt::print("stopped   after {} {}: {}\n", iterations, iterations == 1 ? "iteration" : "iterations", reason(flags, r));
  if (const auto rank = count(r, "effective_rank"); rank < flags.rank)
    fmt::print("note      the last solves had effective rank {} of {}: components are linearly dependent\n", rank,
               flags.rank);
  if (const double error = number(r, "fit_error"); error > 1e-6)
    fmt::print("note      components cancel: rounding may have moved the fit by {:.1e}\n", error);
  if (const std::string creeping = word(r, "creeping"); !creeping.empty())
    fmt::print("note      {}\n", in_flags(creeping));
  if (flags.leading > 0 && has_labels(r.model))
    print_components(r.model, flags.leading);
  else
    print_weights(weights_of(r.model));
  fmt::print("seconds   {:.3f}: init {:.3f}, mttkrp {:.3f}, solve {:.3f}, fit {:.3f}; reading the file took {:.3f}\n",
             number(r, "seconds"), number(r, "seconds.init"), number(r, "seconds.mttkrp"), number(r, "seconds.solve"),
             number(r, "seconds.fit"), r.read_seconds);
  if (const auto workers = worker_figures(r.report); !workers.empty()) {
    fmt::print("breakdown means of the iterations but the first; entries and rows of all modes\n");
    print_workers(workers, "iteration", &WorkerFigures::iteration);
    print_workers(workers, "MTTKRP", &WorkerFigures::mttkrp);
  }
  if (r.score)
    fmt::print("score     {:.6f} against {}\n", *r.score, shown(flags.compare));
  if (const std::string why = word(r, "checkpoint_error"); !why.empty())
    fmt::print("note      the last checkpoint was not written: {}\n", why);
  fmt::print("model     {}{}\n",
             r.wrote_model          ? "written to " + shown(flags.output)
             : flags.output.empty() ? "not written (--output FILE)"
                                    : "not written",
             r.wrote_model && has_labels(r.model) ? lost_names(flags.output, flags.work.table) : "");
  if (r.wrote_report)
    fmt::print("report    written to {}\n", shown(flags.report));
}

int run_cpd(const CpdFlags &flags) {
  Processes::all().join();
  if (Processes::all().idle())
    return exit_ok;
  const Json given = flags.work.table.given();
  const std::string checkpoint = given.value("checkpoint", "");
  const std::string resume = given.value("resume", "");
  refuse_overwriting({flags.file, flags.start, flags.compare}, {flags.output, checkpoint, flags.report});
  refuse_overwriting({resume}, {flags.output, flags.report}); // a run may go on in the checkpoint that it resumes
  if (!flags.start.empty() && !resume.empty())
    throw Failure(exit_usage, "give either --start or --resume: a run that is resumed goes on with its own factors");
  if (const std::string fixed = given.value("fixed_modes", ""); !fixed.empty() && flags.start.empty() && resume.empty())
    throw Failure(exit_usage,
                  fmt::format("--fixed-modes {} needs --start or --resume, which brings their factors", fixed));
  for (const std::string &path : {flags.output, flags.report})
    if (!path.empty())
      refuse_unwritable(path);
  require_report_name(flags.report);
  const Options options = flags.work.table.options();
  const Context context = flags.work.context();
  const Timer reading;
  const Tensor x = make<Tensor>(td_tensor_read, context, flags.file.c_str(), options);
  const double read_seconds = reading.seconds();
  if (!flags.work.json && !flags.work.quiet)
    fmt::print("tensor    {}\nsource    {}\ndevices   {}\n\n", text(td_tensor_describe, x),
               in_flags(text(td_tensor_get_str, x, "source")), text(td_context_describe, context));
  std::fflush(stdout);

  const auto order = static_cast<std::int32_t>(dims_of(x).size());
  require(try_ktensor(flags.output, order, options));
  require(try_report(flags.report, order, options));
  const Ktensor compared = read_compared(flags.compare, context, x);
  Result r = fit(flags, context, x, options);
  r.read_seconds = read_seconds;
  if (!flags.report.empty())
    write_report(flags, context, x, options, r);
  if (double score = 0; !flags.compare.empty() && r.is_done(td_ktensor_score(r.model, compared, 1, &score, nullptr)))
    r.score = score;
  if (flags.work.json) {
    print_json(document(flags, x, r));
  } else {
    fmt::print("{}", flags.work.quiet ? "" : "\n");
    print_summary(flags, r);
  }
  require(r.failure);
  if (r.signal != 0)
    return 128 + r.signal;
  return word(r, "checkpoint_error").empty() ? exit_ok : exit_input;
}

} // namespace

Command add_cpd(CLI::App &td) {
  auto flags = std::make_shared<CpdFlags>();
  CLI::App *app = td.add_subcommand("cpd", "fit a ktensor of rank R to the tensor in a file (CP-ALS)");
  app->add_option("file", flags->file, "tensor: text, .tdb or .npy, also .gz")->required();
  app->add_option("-r,--rank", flags->rank, "components of the model")->required()->check(positive_integer());
  app->add_option("-o,--output", flags->output, "write the model here: Tensor Toolbox text, or .tdb");
  app->add_option("--report", flags->report, "write the run here as a page to look at: .html, or .json for its data");
  app->add_option("--start", flags->start, "start from the ktensor in this file");
  app->add_option("--compare", flags->compare, "print the factor match score against the ktensor in this file");
  app->add_option("--every", flags->every, "off a terminal, print a line every so many iterations [1]")
      ->check(positive_integer());
  app->add_option("--leading", flags->leading, "of a tensor with labels, show so many of them a component and mode [5]")
      ->check(nonnegative_number());
  flags->work.add(*app, {"cpals", "tensor", "read", "context", "write", "report"});
  app->footer("^C stops after the iteration under way; the model so far is written and the exit code is 130.");
  return {app, [flags] { return run_cpd(*flags); }};
}

} // namespace cli
