#include "solvers/state.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/sentence.hpp"

namespace td::solvers {

namespace {

bool is_whole(double v) { return v == std::trunc(v); }

class StateCheck {
public:
  StateCheck(const State &state, i64 solves) : state_(state), solves_(solves) {}

  void run() const {
    const auto order = static_cast<i64>(state_.factors.order());
    const auto rank = static_cast<double>(state_.factors.rank());
    if (state_.iterations < 1)
      refuse("'iterations'", state_.iterations, "1 or more");
    if (state_.exact_residuals < 0 || state_.exact_residuals > state_.iterations)
      refuse("'exact_residuals'", state_.exact_residuals, fmt::format("0 to {} iterations", state_.iterations));
    check(
        "fit", state_.fit, 1, [](double v) { return v <= 1; }, "a number of at most 1");
    check("fit_error", state_.fit_error, 1, not_negative, "a number of at least 0");
    check("fit_change", state_.fit_change, 1, not_negative, "a number of at least 0");
    check("residual", state_.residual, 1, not_negative, "a number of at least 0");
    check("elapsed", state_.elapsed, 1, not_negative, "seconds of at least 0");
    check(
        "effective_rank", state_.effective_rank, solves_, [&](double v) { return v >= 0 && v <= rank && is_whole(v); },
        fmt::format("a whole number from 0 to {}", rank));
    check("condition", state_.condition, solves_, not_negative, "a number of at least 0");
    check("mttkrp_seconds", state_.mttkrp_seconds, order, not_negative, "seconds of at least 0");
    check_columns("scales", state_.scales, order * state_.factors.rank(), positive, "a number above 0");
    check_columns("weights", state_.weights, state_.factors.rank(), not_negative, "a number of at least 0");
    if (state_.scales.empty() != state_.weights.empty())
      throw_error(Status::io, "resume: the checkpoint has '{}' alone; expected 'scales' and 'weights', or neither",
                  state_.scales.empty() ? "weights" : "scales");
  }

private:
  static bool not_negative(double v) { return v >= 0; }
  static bool positive(double v) { return v > 0; }

  template <class Number>
  [[noreturn]] static void refuse(const std::string &what, Number came, const std::string &expected) {
    throw_error(Status::io, "resume: the checkpoint's {} is {}; expected {}", what, came, expected);
  }

  template <class Allowed>
  void check(const char *name, const std::vector<double> &series, i64 per_iteration, Allowed &&allowed,
             const std::string &expected) const {
    const auto size = static_cast<i64>(series.size());
    const bool fits =
        per_iteration == 0 ? size == 0 : size % per_iteration == 0 && size / per_iteration == state_.iterations;
    if (!fits)
      throw_error(Status::io, "resume: the checkpoint's '{}' holds {}; expected {} for each of {} iterations", name,
                  count_text(size, "number", "numbers"), per_iteration, state_.iterations);
    check_numbers(name, series, allowed, expected);
  }

  template <class Allowed>
  void check_columns(const char *name, const std::vector<double> &numbers, i64 count, Allowed &&allowed,
                     const std::string &expected) const {
    if (!numbers.empty() && std::ssize(numbers) != count)
      throw_error(Status::io, "resume: the checkpoint's '{}' holds {}; expected {}", name,
                  count_text(std::ssize(numbers), "number", "numbers"), count);
    check_numbers(name, numbers, allowed, expected);
  }

  template <class Allowed>
  static void check_numbers(const char *name, const std::vector<double> &numbers, Allowed &&allowed,
                            const std::string &expected) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!std::isfinite(numbers[i]) || !allowed(numbers[i]))
        refuse(fmt::format("'{}' [{}]", name, i), numbers[i], expected);
  }

  const State &state_;
  i64 solves_;
};

} // namespace

void check_state(const State &state, i64 solves) { StateCheck(state, solves).run(); }

} // namespace td::solvers
