// What a person sees while cpals runs: one line that renews itself on a terminal, a line an iteration elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>

#include <td/td.h>

namespace cli {

class Progress {
public:
  /// out: where to, or null for nowhere; every: plain lines come for each iteration that this divides.
  Progress(std::FILE *out, std::int64_t every);

  /// A td_progress_fn with a Progress as user: shows the run so far, and stops it once a signal has come.
  static std::int32_t callback(const td_report *so_far, void *user);

  /// Shows the last iteration if it is not on display yet, and ends the line.
  void finish(const td_report *report);

private:
  void show(const td_report *report, bool last);
  void print(const td_report *report);

  std::FILE *out_;
  std::int64_t every_;
  bool live_;
  double shown_seconds_ = -1;
  std::int64_t shown_ = 0;
};

} // namespace cli
