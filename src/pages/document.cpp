#include "pages/document.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/mode_list.hpp"
#include "pages/drawing.hpp"
#include "pages/findings.hpp"

namespace td::pages {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_iterations = 500; // in the document, of as many as there were
constexpr int digits = 5;                    // of what is drawn

/// The number as text with so many digits says it; shorter in the document.
double rounded(double v) {
  if (v == 0 || !(std::abs(v) > 1e-200 && std::abs(v) < 1e200)) // where the power or the product would leave f64
    return v;
  const double decimal = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(v))));
  return std::round(v * decimal) / decimal;
}

Json rounded_list(const std::vector<double> &values) {
  Json list = Json::array();
  for (const double v : values)
    list.push_back(rounded(v));
  return list;
}

/// Which iterations the document tells of: all, or evenly many, the last among them.
std::vector<std::size_t> told_iterations(std::size_t n) {
  std::vector<std::size_t> told;
  const std::size_t most = std::min(n, most_iterations);
  for (std::size_t k = 1; k <= most; ++k)
    told.push_back(k * n / most - 1);
  return told;
}

Json history_of(const solvers::Report &report) {
  Json history = {{"iteration", Json::array()},
                  {"fit", Json::array()},
                  {"fit_change", Json::array()},
                  {"residual", Json::array()},
                  {"seconds", Json::array()}};
  for (const std::size_t k : told_iterations(report.fit.size())) {
    history["iteration"].push_back(k + 1);
    history["fit"].push_back(report.fit[k]);
    history["fit_change"].push_back(rounded(report.fit_change[k]));
    history["residual"].push_back(rounded(report.residual[k]));
    history["seconds"].push_back(rounded(report.elapsed[k]));
  }
  return history;
}

Json report_of(const solvers::Report &report) {
  return {{"fit", report.fit.empty() ? 0 : report.fit.back()},
          {"explained", report.explained},
          {"relative", report.relative},
          {"iterations", report.iterations},
          {"resumed_from", report.resumed_from},
          {"converged", report.converged},
          {"stop_reason", report.stop_reason},
          {"effective_rank", report.smallest_effective_rank()},
          {"condition", rounded(report.largest_condition())},
          {"norm", report.norm},
          {"format", report.format},
          {"devices", report.devices},
          {"init", report.init},
          {"seconds",
           {{"total", rounded(report.seconds)},
            {"init", rounded(report.seconds_init)},
            {"mttkrp", rounded(report.seconds_mttkrp)},
            {"solve", rounded(report.seconds_solve)},
            {"fit", rounded(report.seconds_fit)}}}};
}

Json tensor_of(const tensor::Tensor &x) {
  return {{"description", x.describe()}, {"source", x.source()},        {"sparse", x.sparse()},
          {"entries", x.facts().nnz},    {"min", x.facts().min},        {"max", x.facts().max},
          {"norm", x.facts().norm},      {"seconds", x.build_seconds()}};
}

/// The options of a run that are not at their defaults.
Json settings_of(const Options &options) {
  Json settings = Json::object();
  for (const OptionRow &row : option_table())
    if (row.scope == "cpals" && options.text(row.name) != Options().text(row.name))
      settings[std::string(row.name)] = options.text(row.name);
  return settings;
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

Json names_of(const Points &points, const LabelList &names) {
  Json list = Json::array();
  for (const double row : points.rows)
    list.push_back(names[static_cast<i64>(row)]);
  return list;
}

Json mode_of(const std::string &title, const Drawing &drawing, ConstMatrix a, const std::vector<Points> &columns,
             const LabelList *names) {
  constexpr const char *kinds[] = {"bars", "line", "leading"};
  Json mode = {{"name", title},
               {"dim", a.rows},
               {"drawn_as", kinds[static_cast<int>(drawing.kind)]},
               {"why", drawing.why},
               {"names", Json(nullptr)}};
  if (drawing.kind == Drawing::Kind::leading)
    return mode;
  mode["rows"] = columns.front().rows;
  if (names != nullptr)
    mode["names"] = names_of(columns.front(), *names);
  return mode;
}

Json column_of(const Points &points, Drawing::Kind kind, const LabelList *names) {
  Json column = {{"values", rounded_list(points.values)}};
  if (kind != Drawing::Kind::leading)
    return column;
  column["rows"] = points.rows;
  if (names != nullptr)
    column["names"] = names_of(points, *names);
  return column;
}

void add_model(Json &out, const Run &run, const Ktensor &k) {
  const i64 shown = std::min(k.rank(), most_components);
  const std::vector<std::string> titles = mode_names(run, k.order());
  const auto lines = line_modes(run.options, k.order());
  out["modes"] = Json::array();
  out["components"] = Json::array();
  for (i64 r = 0; r < shown; ++r)
    out["components"].push_back(
        {{"weight", rounded(k.weights()[static_cast<std::size_t>(r)])}, {"columns", Json::array()}});
  for (int m = 0; m < k.order(); ++m) {
    const ConstMatrix a = k.factor(m);
    const LabelList *names = run.labels.list(m);
    const bool named = lines && std::find(lines->begin(), lines->end(), m) != lines->end();
    const Drawing drawing = drawing_of(a, k.weights(), named, !lines, names);
    const std::vector<Points> columns = points_of(a, drawing.kind, shown);
    out["modes"].push_back(mode_of(titles[static_cast<std::size_t>(m)], drawing, a, columns, names));
    for (std::size_t r = 0; r < columns.size(); ++r)
      out["components"][r]["columns"].push_back(column_of(columns[r], drawing.kind, names));
  }
}

} // namespace

std::string document_of(const Run &run) {
  Ktensor k = run.model.copy(run.budget);
  k.normalize();
  Json out = {{"title", run.options.text("report_title")},
              {"command", run.options.text("report_command")},
              {"rank", k.rank()},
              {"dims", std::vector<i64>(k.dims().begin(), k.dims().end())},
              {"options", settings_of(run.options)},
              {"tensor", run.tensor == nullptr ? Json(nullptr) : tensor_of(*run.tensor)},
              {"report", report_of(run.report)},
              {"findings", findings_of(run, k)},
              {"history", history_of(run.report)},
              {"weights", rounded_list({k.weights().begin(), k.weights().end()})}};
  add_model(out, run, k);
  out["plan"] = run.plan == nullptr ? Json(nullptr) : Json(run.plan->describe());
  std::string text = out.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Only within strings can there be one, and there it may be written as an escape.
  for (auto at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1))
    text.replace(at, 1, "\\u003c");
  return text;
}

} // namespace td::pages
