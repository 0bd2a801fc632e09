#include "support/handles.hpp"

namespace tdtest {

namespace {

/// Calls text(buf, cap, needed) twice: for the size and for the text.
template <class Text> std::string whole_text(Text &&text) {
  int64_t needed = 0;
  must(text(nullptr, 0, &needed));
  std::string s(static_cast<std::size_t>(needed), '\0');
  must(text(s.data(), needed, &needed));
  s.pop_back(); // the NUL
  return s;
}

} // namespace

std::string last_error() {
  std::string s(static_cast<std::size_t>(td_last_error(nullptr, 0)), '\0');
  td_last_error(s.data(), static_cast<int64_t>(s.size()));
  if (!s.empty())
    s.pop_back();
  return s;
}

Options::Options(std::initializer_list<std::pair<const char *, std::string>> settings) {
  must(td_options_create(out()));
  for (const auto &[key, value] : settings)
    set(key, value);
}

Options &Options::set(const char *key, const std::string &value) {
  must(td_options_set_str(*this, key, value.c_str()));
  return *this;
}

Context make_context(const std::string &devices, const td_options *options) {
  Context c;
  must(td_context_create(devices.c_str(), options, c.out()));
  return c;
}

Outcome cpals(td_context *context, const td_tensor *x, int64_t rank, const td_options *options, const td_ktensor *init,
              td_progress_fn progress, void *user) {
  Outcome run;
  run.status = must(td_cpals(context, x, rank, init, options, progress, user, run.model.out(), run.report.out()));
  return run;
}

int64_t report_i64(const td_report *report, const char *key) {
  int64_t v = 0;
  must(td_report_get_i64(report, key, &v));
  return v;
}

double report_f64(const td_report *report, const char *key) {
  double v = 0;
  must(td_report_get_f64(report, key, &v));
  return v;
}

std::string report_str(const td_report *report, const char *key) {
  return whole_text([&](char *b, int64_t c, int64_t *n) { return td_report_get_str(report, key, b, c, n); });
}

std::vector<double> report_series(const td_report *report, const char *key) {
  int64_t n = 0;
  must(td_report_get_series(report, key, nullptr, 0, &n));
  std::vector<double> v(static_cast<std::size_t>(n));
  must(td_report_get_series(report, key, v.data(), n, &n));
  return v;
}

int64_t tensor_nnz(const td_tensor *x) {
  int64_t nnz = 0;
  must(td_tensor_nnz(x, &nnz));
  return nnz;
}

double tensor_norm(const td_tensor *x) {
  double norm = 0;
  must(td_tensor_norm(x, &norm));
  return norm;
}

std::string tensor_str(const td_tensor *x, const char *key) {
  return whole_text([&](char *b, int64_t c, int64_t *n) { return td_tensor_get_str(x, key, b, c, n); });
}

std::vector<double> weights_of(const td_ktensor *k) {
  int64_t rank = 0;
  must(td_ktensor_shape(k, nullptr, nullptr, &rank, nullptr));
  std::vector<double> w(static_cast<std::size_t>(rank));
  must(td_ktensor_get_weights(k, w.data()));
  return w;
}

double ktensor_norm(const td_ktensor *k) {
  double norm = 0;
  must(td_ktensor_norm(k, &norm));
  return norm;
}

double score(const td_ktensor *a, const td_ktensor *b, bool use_weights) {
  double s = 0;
  must(td_ktensor_score(a, b, use_weights ? 1 : 0, &s, nullptr));
  return s;
}

Fit fit_of(td_context *context, const td_ktensor *k, const td_tensor *x) {
  Fit f{};
  must(td_ktensor_fit(context, k, x, &f.fit, &f.explained, &f.relative, &f.residual));
  return f;
}

} // namespace tdtest
