#include "interrupt.hpp"

namespace cli {

namespace {

volatile std::sig_atomic_t came = 0;

void note(int number) { came = number; }

void listen(int number, struct sigaction &old) {
  sigaction(number, nullptr, &old);
  if (old.sa_handler == SIG_IGN)
    return;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(number, &action, nullptr);
}

} // namespace

InterruptGuard::InterruptGuard() : old_int_(), old_term_() {
  listen(SIGINT, old_int_);
  listen(SIGTERM, old_term_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

int InterruptGuard::signal() noexcept { return came; }

} // namespace cli
