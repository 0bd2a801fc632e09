// What the commands tell about a tensor and its slices.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flags.hpp"

namespace cli {

class Timer {
public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A fact such as "norm"; nothing where it is beyond f64.
std::optional<double> fact(const td_tensor *x, const char *key);
/// The same for people and for JSON, which has no infinity.
std::string fact_text(const td_tensor *x, const char *key);
Json fact_json(const td_tensor *x, const char *key);

/// order, dims, entries, type, sparse, format, source, norm.
Json tensor_facts(const td_tensor *x);

/// Slices of one mode that hold entries.
struct Slices {
  std::int64_t dim = 0;
  std::int64_t nonempty = 0;
  bool first_is_empty = false;
  std::int64_t smallest = 0, median = 0, largest = 0; // entries in a nonempty slice; 0 if there is none
  double skew = 0;                                    // see skew_of
};
std::vector<Slices> slices(const td_tensor *x);

/// The s for which entries that fall on slice d * u^(1/(1-s)), u uniform, are as unequal as these (the law by which
/// `td generate --skew` draws): 0 if all slices hold the same, towards 1 the more entries a few slices hold.
/// counts: the entries of each nonempty slice, in descending order.
double skew_of(const std::vector<std::int64_t> &counts, std::int64_t dim);

} // namespace cli
