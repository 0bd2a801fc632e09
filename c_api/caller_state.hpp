// What belongs to the calling thread and would change what a call computes or how it ends.
#pragma once

#include <cfenv>
#include <cstdint>

namespace td::c_api {

/// While it lives, the thread computes as IEEE 754 has it by default (round to nearest, subnormal numbers, no traps)
/// and is not cancelled: pthread_cancel takes effect at the first cancellation point after the call. At its end the
/// thread has again what it had, its exception flags included. Threads that are started meanwhile inherit the defaults.
class CallerState {
public:
  CallerState() noexcept;
  CallerState(const CallerState &) = delete;
  CallerState &operator=(const CallerState &) = delete;
  ~CallerState();

private:
  int cancel_state_ = 0;
  std::uint32_t control_ = 0; // where plain_: the register that has the flags
  bool plain_;                // the caller's floating-point environment is the default one but for its flags
  std::fenv_t environment_;   // where it is not
};

} // namespace td::c_api
