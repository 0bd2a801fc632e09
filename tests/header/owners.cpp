// td.hpp alone, as strictly as a compiler of C++17 or C++20 can read it, with its templates in use.
#include <td/td.hpp>

std::vector<double> td_hpp_stands_alone(td_context *context, const char *file);
std::vector<double> td_hpp_stands_alone(td_context *context, const char *file) {
  const auto x = tdpp::make<tdpp::Tensor>(td_tensor_read, context, file, tdpp::Options{{"index_base", "0"}});
  const auto run = tdpp::cpals(tdpp::share(context), x, tdpp::get<std::int32_t>(td_tensor_order, x));
  if (tdpp::text(td_report_get_str, run.report, "stop_reason") == "tol")
    return tdpp::weights_of(run.model);
  return tdpp::series(td_report_get_series, run.report, "fit");
}
