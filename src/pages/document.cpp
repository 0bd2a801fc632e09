#include "pages/document.hpp"

#include <algorithm>
#include <cmath>

#include "core/mode_list.hpp"
#include "pages/drawing.hpp"
#include "pages/findings.hpp"
#include "pages/json.hpp"

namespace td::pages {

namespace {

constexpr std::size_t most_iterations = 500; // in the document, of as many as there were
constexpr int digits = 5;                    // of what is drawn

/// The number as text with so many digits says it; shorter in the document.
double rounded(double v) {
  if (v == 0 || !(std::abs(v) > 1e-200 && std::abs(v) < 1e200)) // where the power or the product would leave f64
    return v;
  const double decimal = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(v))));
  return std::round(v * decimal) / decimal;
}

std::vector<double> rounded_list(std::span<const double> values) {
  std::vector<double> list;
  for (const double v : values)
    list.push_back(rounded(v));
  return list;
}

/// Gives the iterations that the document reports: all, or evenly many, the last among them.
std::vector<std::size_t> reported_iterations(std::size_t n) {
  std::vector<std::size_t> reported;
  const std::size_t most = std::min(n, most_iterations);
  for (std::size_t k = 1; k <= most; ++k)
    reported.push_back(k * n / most - 1);
  return reported;
}

void write_history(JsonText &out, const solvers::Report &report) {
  const std::vector<std::size_t> reported = reported_iterations(report.fit.size());
  const auto series = [&](std::string_view name, const std::vector<double> &values, bool whole) {
    std::vector<double> some;
    for (const std::size_t k : reported)
      some.push_back(whole ? values[k] : rounded(values[k]));
    out.members(name, some);
  };
  out.key("history");
  out.begin('{');
  out.key("iteration");
  out.begin('[');
  for (const std::size_t k : reported)
    out.value(k + 1);
  out.end(']');
  series("fit", report.fit, true);
  series("fit_change", report.fit_change, false);
  series("residual", report.residual, false);
  series("seconds", report.elapsed, false);
  out.end('}');
}

void write_report(JsonText &out, const solvers::Report &report) {
  out.key("report");
  out.begin('{');
  out.member("fit", report.fit.empty() ? 0.0 : report.fit.back());
  out.member("explained", report.explained);
  out.member("relative", report.relative);
  out.member("iterations", report.iterations);
  out.member("resumed_from", report.resumed_from);
  out.member("converged", report.converged);
  out.member("stop_reason", name_of(report.stop_reason));
  out.member("effective_rank", report.smallest_effective_rank());
  out.member("condition", rounded(report.largest_condition()));
  out.member("norm", report.norm);
  out.member("format", report.format);
  out.member("devices", report.devices);
  out.member("init", report.init);
  out.key("seconds");
  out.begin('{');
  out.member("total", rounded(report.seconds));
  out.member("init", rounded(report.seconds_init));
  out.member("mttkrp", rounded(report.seconds_mttkrp));
  out.member("solve", rounded(report.seconds_solve));
  out.member("fit", rounded(report.seconds_fit));
  out.end('}');
  out.end('}');
}

void write_tensor(JsonText &out, const tensor::Tensor *x) {
  out.key("tensor");
  if (x == nullptr)
    return out.null();
  out.begin('{');
  out.member("description", x->describe());
  out.member("source", x->source());
  out.member("sparse", x->sparse());
  out.member("entries", x->facts().nnz);
  out.member("min", x->facts().min);
  out.member("max", x->facts().max);
  out.member("norm", x->facts().norm);
  out.member("seconds", x->build_seconds());
  out.end('}');
}

/// The options of a run that are not at their defaults.
void write_settings(JsonText &out, const Options &options) {
  out.key("options");
  out.begin('{');
  for (const OptionRow &row : option_table())
    if (row.scope == "cpals" && options.text(row.name) != Options().text(row.name))
      out.member(row.name, options.text(row.name));
  out.end('}');
}

/// The modes' names by option mode_names, separated by commas, else by their labels, else "mode 0", "mode 1", ...
std::vector<std::string> mode_names(const Run &run, int order) {
  const std::string text = run.options.text("mode_names");
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();)
    names.emplace_back(trimmed(take_token(rest, ',')));
  if (!names.empty() && static_cast<int>(names.size()) != order)
    throw_error(Status::option_range, "option 'mode_names' = \"{}\": {} names, expected {}, one a mode", text,
                names.size(), order);
  for (int m = static_cast<int>(names.size()); m < order; ++m)
    names.push_back(run.labels.name(m).empty() ? fmt::format("mode {}", m) : run.labels.name(m));
  return names;
}

/// Rows of points, and their names where they have some.
void write_rows(JsonText &out, const Points &points, const LabelList *names) {
  out.members("rows", points.rows);
  if (names == nullptr)
    return;
  out.key("names");
  out.begin('[');
  for (const double row : points.rows)
    out.string((*names)[static_cast<i64>(row)]);
  out.end(']');
}

/// How a mode is drawn, and the points of its columns.
struct DrawnMode {
  Drawing drawing;
  std::vector<Points> columns;
  const LabelList *names = nullptr;

  bool rows_differ() const { return drawing.kind == Drawing::Kind::leading; }
};

std::vector<DrawnMode> draw(const Run &run, const Ktensor &k, i64 shown) {
  const auto lines = line_modes(run.options, k.order());
  std::vector<DrawnMode> modes;
  for (int m = 0; m < k.order(); ++m) {
    const bool named = lines && std::find(lines->begin(), lines->end(), m) != lines->end();
    const LabelList *names = run.labels.list(m);
    const Drawing drawing = drawing_of(k.factor(m), k.weights(), named, !lines, names);
    modes.push_back({drawing, points_of(k.factor(m), drawing.kind, shown), names});
  }
  return modes;
}

void write_modes(JsonText &out, const Run &run, const Ktensor &k, const std::vector<DrawnMode> &modes) {
  constexpr const char *kinds[] = {"bars", "line", "leading"};
  const std::vector<std::string> titles = mode_names(run, k.order());
  out.key("modes");
  out.begin('[');
  for (std::size_t m = 0; m < modes.size(); ++m) {
    out.begin('{');
    out.member("name", titles[m]);
    out.member("dim", k.dims()[m]);
    out.member("drawn_as", kinds[static_cast<int>(modes[m].drawing.kind)]);
    out.member("why", modes[m].drawing.why);
    if (!modes[m].rows_differ())
      write_rows(out, modes[m].columns.front(), modes[m].names);
    out.end('}');
  }
  out.end(']');
}

void write_components(JsonText &out, const Ktensor &k, const std::vector<DrawnMode> &modes, i64 shown) {
  out.key("components");
  out.begin('[');
  for (std::size_t r = 0; r < static_cast<std::size_t>(shown); ++r) {
    out.begin('{');
    out.member("weight", rounded(k.weights()[r]));
    out.key("columns");
    out.begin('[');
    for (const DrawnMode &mode : modes) {
      out.begin('{');
      out.members("values", rounded_list(mode.columns[r].values));
      if (mode.rows_differ())
        write_rows(out, mode.columns[r], mode.names);
      out.end('}');
    }
    out.end(']');
    out.end('}');
  }
  out.end(']');
}

} // namespace

std::string document_of(const Run &run) {
  Ktensor k = run.model.copy(run.budget);
  k.normalize();
  const i64 shown = std::min(k.rank(), most_components);
  const std::vector<DrawnMode> modes = draw(run, k, shown);
  JsonText out;
  out.begin('{');
  out.member("title", run.options.text("report_title"));
  out.member("command", run.options.text("report_command"));
  out.member("rank", k.rank());
  out.members("dims", k.dims());
  write_settings(out, run.options);
  write_tensor(out, run.tensor);
  write_report(out, run.report);
  out.members("findings", findings_of(run, k));
  write_history(out, run.report);
  out.members("weights", rounded_list(k.weights()));
  write_modes(out, run, k, modes);
  write_components(out, k, modes, shown);
  out.key("plan");
  if (run.plan == nullptr)
    out.null();
  else
    out.string(run.plan->describe());
  out.end('}');
  return out.take();
}

} // namespace td::pages
