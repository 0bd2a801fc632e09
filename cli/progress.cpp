#include "progress.hpp"

#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "interrupt.hpp"

namespace cli {

namespace {

/// A terminal that can go back to the start of a line and clear it.
bool can_redraw(std::FILE *out) {
  const char *term = std::getenv("TERM");
  return out != nullptr && isatty(fileno(out)) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

// Redrawing more often than a person can read costs time in slow terminals.
constexpr double redraw_seconds = 0.1;

} // namespace

Progress::Progress(std::FILE *out, std::int64_t every) : out_(out), every_(every), live_(can_redraw(out)) {}

std::int32_t Progress::callback(const td_report *so_far, void *user) {
  static_cast<Progress *>(user)->show(so_far, false);
  return InterruptGuard::signal();
}

void Progress::finish(const td_report *report) {
  show(report, true);
  if (live_ && shown_ > 0)
    std::fputc('\n', out_);
}

void Progress::show(const td_report *report, bool last) {
  std::int64_t iteration = 0;
  double seconds = 0;
  td_report_get_i64(report, "iterations", &iteration);
  td_report_get_f64(report, "seconds", &seconds);
  if (out_ == nullptr || iteration < 1)
    return;
  const bool due = live_ ? shown_seconds_ < 0 || seconds - shown_seconds_ >= redraw_seconds : iteration % every_ == 0;
  // The last one is shown again on a terminal: a line drawn before it may still stand there.
  if (last ? live_ || iteration != shown_ : due) {
    print(report);
    shown_ = iteration;
    shown_seconds_ = seconds;
  }
}

void Progress::print(const td_report *report) {
  std::int64_t iteration = 0;
  double fit = 0, change = 0, seconds = 0;
  td_report_get_i64(report, "iterations", &iteration);
  td_report_get_f64(report, "fit", &fit);
  td_report_get_f64(report, "fit_change", &change);
  td_report_get_f64(report, "seconds", &seconds);
  std::fprintf(out_, "%siter %3lld  fit %.6e  change %.1e  %.2f s%s", live_ ? "\r" : "",
               static_cast<long long>(iteration), fit, change, seconds, live_ ? "\033[K" : "\n");
  std::fflush(out_);
}

} // namespace cli
