#include "iteration_times.hpp"

#include "output.hpp"

namespace cli {

IterationTimes::IterationTimes(const td_report *report, std::int64_t period) {
  const std::vector<double> took = series(td_report_get_series, report, "mttkrp_seconds");
  const std::vector<double> elapsed = series(td_report_get_series, report, "seconds");
  const auto together = static_cast<std::size_t>(period);
  mttkrp.resize(took.size() / elapsed.size());
  for (std::size_t k = 1; k + together <= elapsed.size(); k += together) {
    iteration.push_back((elapsed[k + together - 1] - elapsed[k - 1]) / static_cast<double>(period));
    for (std::size_t m = 0; m < mttkrp.size(); ++m) {
      double sum = 0;
      for (std::size_t i = k; i < k + together; ++i)
        sum += took[i * mttkrp.size() + m];
      mttkrp[m].push_back(sum / static_cast<double>(period));
    }
  }
}

} // namespace cli
