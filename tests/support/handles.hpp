// td.hpp as the tests use it: with the contexts and the numbers that they ask for again and again.
#pragma once

#include <td/td.hpp>

namespace tdtest {

using tdpp::check, tdpp::copy, tdpp::cpals, tdpp::dims_of, tdpp::get, tdpp::last_error, tdpp::make, tdpp::text,
    tdpp::weights_of;
using tdpp::Communicator, tdpp::Context, tdpp::Error, tdpp::Fitted, tdpp::Ktensor, tdpp::Options, tdpp::Plan,
    tdpp::Report, tdpp::Tensor;

inline Context make_context(const std::string &devices, const td_options *options = nullptr) {
  return make<Context>(td_context_create, devices.c_str(), options);
}

inline int64_t report_i64(const td_report *report, const char *key) {
  return get<int64_t>(td_report_get_i64, report, key);
}
inline double report_f64(const td_report *report, const char *key) {
  return get<double>(td_report_get_f64, report, key);
}
inline std::string report_str(const td_report *report, const char *key) { return text(td_report_get_str, report, key); }
inline std::vector<double> report_series(const td_report *report, const char *key) {
  return tdpp::series(td_report_get_series, report, key);
}

inline int64_t tensor_nnz(const td_tensor *x) { return get<int64_t>(td_tensor_nnz, x); }
inline double tensor_norm(const td_tensor *x) { return get<double>(td_tensor_norm, x); }
inline std::string tensor_str(const td_tensor *x, const char *key) { return text(td_tensor_get_str, x, key); }

inline double ktensor_norm(const td_ktensor *k) { return get<double>(td_ktensor_norm, k); }
inline double score(const td_ktensor *a, const td_ktensor *b, bool use_weights = true) {
  double s = 0;
  check(td_ktensor_score(a, b, use_weights ? 1 : 0, &s, nullptr));
  return s;
}

struct Fit {
  double fit, explained, relative, residual;
};
inline Fit fit_of(td_context *context, const td_ktensor *k, const td_tensor *x) {
  Fit f{};
  check(td_ktensor_fit(context, k, x, &f.fit, &f.explained, &f.relative, &f.residual));
  return f;
}

} // namespace tdtest
