#include "pages/run.hpp"

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "named.hpp"
#include "tensor/planned.hpp"

using namespace td;
using namespace td::c_api;
using solvers::Report;

namespace {

double last(const std::vector<double> &series) { return series.empty() ? 0.0 : series.back(); }

constexpr NamedValue<Report, i64> integers[] = {
    {"iterations", [](const Report &r) { return r.iterations; }},
    {"converged", [](const Report &r) { return i64{r.converged}; }},
    {"order", [](const Report &r) { return r.order; }},
    {"rank", [](const Report &r) { return r.rank; }},
    {"workers", [](const Report &r) { return r.workers; }},
    {"threads", [](const Report &r) { return r.threads; }},
    {"resumed_from", [](const Report &r) { return r.resumed_from; }},
    {"exchanged_bytes", [](const Report &r) { return r.exchanged_bytes; }},
    {"effective_rank", [](const Report &r) { return r.smallest_effective_rank(); }},
    {"exact_residuals", [](const Report &r) { return r.exact_residuals; }},
};

constexpr NamedValue<Report, double> reals[] = {
    {"fit", [](const Report &r) { return last(r.fit); }},
    {"explained", [](const Report &r) { return r.explained; }},
    {"relative", [](const Report &r) { return r.relative; }},
    {"residual", [](const Report &r) { return last(r.residual); }},
    {"fit_error", [](const Report &r) { return last(r.fit_error); }},
    {"fit_change", [](const Report &r) { return last(r.fit_change); }},
    {"fit_growth", [](const Report &r) { return r.fit_growth; }},
    {"condition", [](const Report &r) { return r.largest_condition(); }},
    {"norm", [](const Report &r) { return r.norm; }},
    {"seconds", [](const Report &r) { return r.seconds; }},
    {"seconds.init", [](const Report &r) { return r.seconds_init; }},
    {"seconds.mttkrp", [](const Report &r) { return r.seconds_mttkrp; }},
    {"seconds.solve", [](const Report &r) { return r.seconds_solve; }},
    {"seconds.fit", [](const Report &r) { return r.seconds_fit; }},
};

constexpr NamedValue<Report, std::string_view> texts[] = {
    {"stop_reason", [](const Report &r) { return name_of(r.stop_reason); }},
    {"format", [](const Report &r) { return std::string_view(r.format); }},
    {"devices", [](const Report &r) { return std::string_view(r.devices); }},
    {"init", [](const Report &r) { return std::string_view(r.init); }},
    {"checkpoint_error", [](const Report &r) { return std::string_view(r.checkpoint_error); }},
    {"creeping", [](const Report &r) { return std::string_view(r.creeping); }},
};

constexpr NamedValue<Report, const std::vector<double> &> series[] = {
    {"fit", [](const Report &r) -> const std::vector<double> & { return r.fit; }},
    {"fit_error", [](const Report &r) -> const std::vector<double> & { return r.fit_error; }},
    {"fit_change", [](const Report &r) -> const std::vector<double> & { return r.fit_change; }},
    {"residual", [](const Report &r) -> const std::vector<double> & { return r.residual; }},
    {"seconds", [](const Report &r) -> const std::vector<double> & { return r.elapsed; }},
    {"effective_rank", [](const Report &r) -> const std::vector<double> & { return r.effective_rank; }},
    {"condition", [](const Report &r) -> const std::vector<double> & { return r.condition; }},
    {"mttkrp_seconds", [](const Report &r) -> const std::vector<double> & { return r.mttkrp_seconds; }},
    {"worker.entries", [](const Report &r) -> const std::vector<double> & { return r.breakdown.entries; }},
    {"worker.rows", [](const Report &r) -> const std::vector<double> & { return r.breakdown.rows; }},
    {"worker.mttkrp_seconds", [](const Report &r) -> const std::vector<double> & { return r.breakdown.mttkrp; }},
    {"worker.iteration_seconds", [](const Report &r) -> const std::vector<double> & { return r.breakdown.iteration; }},
};

} // namespace

extern "C" {

td_status td_report_copy(const td_report *report, td_report **out) {
  return guard([&] {
    require_out(out, "out");
    *out = make_handle<td_report>(std::make_shared<const Report>(*object_of(report, "report")));
  });
}

void td_report_destroy(td_report *report) { drop_handle(report); }

td_status td_report_get_i64(const td_report *report, const char *key, int64_t *value) {
  return guard([&] {
    const auto r = object_of(report, "report");
    require(value, "value");
    *value = named(integers, *r, key);
  });
}

td_status td_report_get_f64(const td_report *report, const char *key, double *value) {
  return guard([&] {
    const auto r = object_of(report, "report");
    require(value, "value");
    *value = finite(named(reals, *r, key), fmt::format("the report's '{}'", key));
  });
}

td_status td_report_get_str(const td_report *report, const char *key, char *buf, int64_t cap, int64_t *needed) {
  return guard([&] {
    const auto r = object_of(report, "report");
    copy_text(named(texts, *r, key), buf, cap, needed);
  });
}

td_status td_report_get_series(const td_report *report, const char *key, double *values, int64_t cap, int64_t *n) {
  return guard([&] {
    const auto r = object_of(report, "report");
    const std::vector<double> &numbers = named(series, *r, key);
    const std::string name = fmt::format("a number of the report's '{}'", key);
    for (const double number : numbers)
      finite(number, name);
    copy_series(numbers, values, cap, n);
  });
}

td_status td_report_write(td_context *context, const td_report *report, const td_tensor *tensor,
                          const td_ktensor *model, const td_options *options, const char *path) {
  return guard([&] {
    const auto c = object_of(context, "context");
    const auto r = object_of(report, "report");
    const auto k = object_of(model, "model");
    require(path, "path");
    pages::Run run{
        .report = *r, .model = *k, .options = options_in(*c, options), .budget = c->budget(), .labels = k->labels()};
    if (tensor == nullptr)
      return pages::write(run, path);
    const auto x = tensor_for(*c, tensor);
    const plan::Plan plan = tensor::plan_of(*x, {run.options, k->rank(), c->backends_of(0), c->describe()});
    run.tensor = x.get();
    run.plan = &plan;
    if (run.labels.empty())
      run.labels = object_of<td_tensor>(tensor, "tensor")->labels;
    pages::write(run, path);
  });
}

} // extern "C"
