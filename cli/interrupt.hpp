// ^C and SIGTERM as a wish to stop that the running computation can ask about.
#pragma once

#include <csignal>

namespace cli {

/// While it lives, SIGINT and SIGTERM only set a flag; a second signal ends the process as usual, so that a user is
/// never held. A signal that the process was started with ignored (nohup, a shell's background job) stays ignored.
class InterruptGuard {
public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard &) = delete;
  InterruptGuard &operator=(const InterruptGuard &) = delete;

  /// The number of the signal that came, or 0.
  static int signal() noexcept;

private:
  struct sigaction old_int_, old_term_;
};

} // namespace cli
