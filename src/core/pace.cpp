#include "core/pace.hpp"

#include <algorithm>
#include <chrono>

namespace td {

namespace {

using namespace std::chrono_literals;

// The scheduler lets a thread run for some milliseconds at a time: what is timed has to have seen some of them. It may
// start two threads on one processor, and takes some tens of milliseconds until it moves one of them away.
constexpr double look_seconds = 0.01;
constexpr int looks_of_settling = 3;
constexpr double together_seconds = 0.03;
constexpr double clear = 1.5; // processors in one look that need no further ones, but where one thread was better
// Several threads take more processor time for the same work than one: private sums are merged, caches are shared.
constexpr double gain = 1.15;
constexpr Clock::duration rest_together = 50ms;
constexpr Clock::duration first_rest_alone = 80ms;
constexpr Clock::duration longest_rest_alone = 640ms;

} // namespace

Pace::Way Pace::next(Clock::time_point now) noexcept {
  if (phase_ == Phase::resting && now >= until_)
    begin(Phase::settling);
  return {phase_ == Phase::alone || (phase_ == Phase::resting && alone_), phase_ != Phase::resting};
}

void Pace::took(double processors, double wall, Clock::time_point now) noexcept {
  processors_ += processors;
  wall_ += wall;
  if (phase_ == Phase::resting || wall_ < (phase_ == Phase::together ? together_seconds : look_seconds))
    return;
  const double rate = processors_ / wall_;
  if (phase_ == Phase::alone) {
    rest(rate_together_ < gain * rate, now);
  } else if ((rate >= clear && !alone_) ||
             (phase_ == Phase::together && rate >= gain)) { // one thread has one processor at most
    rest(false, now);
  } else if (phase_ == Phase::together) {
    rate_together_ = rate;
    begin(Phase::alone);
  } else if (++looks_ == looks_of_settling) {
    begin(Phase::together);
  } else {
    processors_ = wall_ = 0;
  }
}

void Pace::begin(Phase phase) noexcept {
  phase_ = phase;
  processors_ = wall_ = 0;
  looks_ = 0;
}

void Pace::rest(bool alone, Clock::time_point now) noexcept {
  if (!alone)
    rest_ = rest_together;
  else
    rest_ = alone_ ? std::min(2 * rest_, longest_rest_alone) : first_rest_alone;
  alone_ = alone;
  phase_ = Phase::resting;
  until_ = now + rest_;
}

} // namespace td
