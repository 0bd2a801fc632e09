#include "pages/findings.hpp"

#include <algorithm>
#include <cmath>

#include "core/columns.hpp"
#include "core/sentence.hpp"

namespace td::pages {

namespace {

// Products over modes of the cosines of two components: beyond these they are the same, or nearly each other's negative
// with weights that may grow without bound, as where a tensor has no best model of the rank.
constexpr double alike = 0.95;
constexpr double opposite = -0.9;
constexpr i64 most_compared = 512; // whose cosines take 2 MiB
constexpr std::size_t most_listed = 5;
constexpr double nothing = 1e-12; // of the largest weight
constexpr double much_rounding = 1e-6;

struct Pair {
  i64 r = 0, s = 0;
  double cosine = 0;
};

/// [n * n] products over modes of the cosines of the first n components.
std::vector<double> cosines_of(const Ktensor &k, i64 n) {
  std::vector<double> product(static_cast<std::size_t>(n * n), 1);
  for (int m = 0; m < k.order(); ++m) {
    const ConstMatrix a = k.factor(m).columns(0, n);
    const ColumnScales scales = column_scales(a);
    const std::vector<double> lengths = scaled_norms(a, scales);
    const std::vector<double> gram = scaled_gram(a, scales, a, scales);
    for (std::size_t t = 0; t < product.size(); ++t) {
      const double both = lengths[t / static_cast<std::size_t>(n)] * lengths[t % static_cast<std::size_t>(n)];
      product[t] *= both > 0 ? gram[t] / both : 0;
    }
  }
  return product;
}

std::string listed(const std::vector<Pair> &pairs) {
  std::string text;
  for (std::size_t k = 0; k < std::min(pairs.size(), most_listed); ++k)
    text += fmt::format("{}{} and {} ({:.3f})", k == 0 ? "" : ", ", pairs[k].r + 1, pairs[k].s + 1, pairs[k].cosine);
  return text + (pairs.size() > most_listed ? fmt::format(", and {} more pairs", pairs.size() - most_listed) : "");
}

void find_pairs(const Ktensor &k, std::vector<std::string> &findings) {
  const i64 n = std::min(k.rank(), most_compared);
  const std::vector<double> cosines = cosines_of(k, n);
  std::vector<Pair> same, cancelling;
  for (i64 r = 0; r < n; ++r) {
    for (i64 s = r + 1; s < n; ++s) {
      const bool turned =
          (k.weights()[static_cast<std::size_t>(r)] < 0) != (k.weights()[static_cast<std::size_t>(s)] < 0);
      const double cosine = cosines[static_cast<std::size_t>(r * n + s)] * (turned ? -1 : 1);
      if (cosine >= alike)
        same.push_back({r, s, cosine});
      else if (cosine <= opposite)
        cancelling.push_back({r, s, cosine});
    }
  }
  if (!same.empty())
    findings.push_back(
        fmt::format("Duplicate components: {} are alike in every mode (product of their cosines). A lower "
                    "rank may do as well.",
                    listed(same)));
  if (!cancelling.empty())
    findings.push_back(
        fmt::format("Degenerate components: {} nearly cancel each other (product of their cosines). Their "
                    "shapes mean little; try a lower rank, option ridge, or another seed.",
                    listed(cancelling)));
}

void find_empty(const Ktensor &k, std::vector<std::string> &findings) {
  double largest = 0;
  for (const double w : k.weights())
    largest = std::max(largest, std::abs(w));
  const auto empty =
      std::count_if(k.weights().begin(), k.weights().end(), [&](double w) { return std::abs(w) <= nothing * largest; });
  if (empty > 0)
    findings.push_back(fmt::format("{} nothing to the model (weight 0, or next to it). A lower rank may do as well.",
                                   count_text(empty, "component adds", "components add")));
}

} // namespace

std::vector<std::string> findings_of(const Run &run, const Ktensor &columns) {
  using solvers::StopReason;
  const solvers::Report &report = run.report;
  std::vector<std::string> findings;
  find_pairs(columns, findings);
  find_empty(columns, findings);
  if (const i64 rank = report.smallest_effective_rank(); rank < report.rank)
    findings.push_back(
        fmt::format("The last solves had effective rank {} of {}: components are linearly dependent in some "
                    "mode.",
                    rank, report.rank));
  if (!report.fit_error.empty() && report.fit_error.back() > much_rounding)
    findings.push_back(
        fmt::format("Components cancel: rounding may have moved the fit by {:.1e}.", report.fit_error.back()));
  if (!report.converged && !report.fit_change.empty())
    findings.push_back(
        fmt::format("The run was ended by {}, when an iteration still changed the fit by {:.1e}.",
                    report.stop_reason == StopReason::callback ? "its caller" : name_of(report.stop_reason),
                    report.fit_change.back()));
  if (!report.creeping.empty())
    findings.push_back(report.creeping);
  if (!report.checkpoint_error.empty())
    findings.push_back(fmt::format("The last checkpoint was not written: {}", report.checkpoint_error));
  return findings;
}

} // namespace td::pages
